#!/bin/bash
# Names of lock files (style = file) that another host has removed: whoever looks on the host that had made them does not find them any
# more, not even at once, though the servers had no time to tell that host. Each is tried many times. Who has such a file open goes on with it.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

requires test "$UID" -eq 0
start_plain_hosts

start looks "$python" -u "$tests/system/files/files_stale.py" "${TIMES:-20}" "$dir/A/files" "$dir/B/files"
finish looks
cat "$dir/looks.out"
grep -q '^orphan' "$dir/looks.out" || fail "it did not end"
! grep -v ' 0 of \|^created\|^orphan' "$dir/looks.out" || fail "what B has removed is found on A"
expect_equal "open(O_CREAT) while B removes the name" "created ok $((${TIMES:-20} * 10))" "$(grep ^created "$dir/looks.out")"
expect_equal "a file without a name" orphan "$(grep ^orphan "$dir/looks.out")"
