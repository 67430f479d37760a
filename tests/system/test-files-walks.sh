#!/bin/bash
# Calls by a path whose directories another host makes and removes at the same time (style = file) find it, or say what Linux says of a
# path that is gone: never ESTALE.
#
# From the environment: STORE, zookeeper (unless given) or etcd; ROUNDS, how often each call is made.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lasting.sh
. "$tests/system/lasting.sh"

requires test "$UID" -eq 0
start_plain_hosts

start walks "$python" -u "$tests/system/files_walks.py" "${ROUNDS:-60}" "$dir/A/files" "$dir/B/files"
wait_until "$((4 * deadline))" gone walks
expect_equal "what Linux does not say" "done" "$(<"$dir/walks.out")"
