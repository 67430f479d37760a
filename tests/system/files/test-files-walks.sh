#!/bin/bash
# Calls by a path whose directories another host makes and removes at the same time (style = file) find it, or say what Linux says of a
# path that is gone: never ESTALE.
#
# From the environment: STORE, zookeeper or etcd (unless given, both); ROUNDS, how often each call is made.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

requires test "$UID" -eq 0
for STORE in ${STORE:-zookeeper etcd}; do
    start_plain_hosts
    start "walks-$STORE" "$python" -u "$tests/system/files/files_walks.py" "${ROUNDS:-60}" "$dir/A/files" "$dir/B/files"
    wait_until "$((2 * deadline))" gone "walks-$STORE"
    expect_equal "what Linux does not say, on $STORE" "done" "$(<"$dir/walks-$STORE.out")"
    for host in A B; do
        stop_dlockfs "$host"
    done
done
