#!/bin/bash
# A suite that others wrote, in a directory of style = file: Python's own tests of locks, temporary files and mailboxes, on two hosts in one
# directory at a time. Left out is one that follows symbolic links: the mount has nosymfollow.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

requires "$python" -c 'import test.test_fcntl'
start_plain_hosts

for host in A B; do
    mkdir "$dir/$host/files/$host"
    start "python-$host" env TMPDIR="$dir/$host/files/$host" "$python" -m test --tempdir "$dir/$host/files/$host" \
        -i test_cleanup_with_symlink_modes test_fcntl test_tempfile test_mailbox
done
for host in A B; do
    wait_until "$((2 * deadline))" gone "python-$host"
    grep -q '^All 3 tests OK' "$dir/python-$host.out" || fail "what Python says on $host: $(grep -E '^(FAIL|ERROR|[A-Za-z]*Error)' "$dir/python-$host.out")"
done
