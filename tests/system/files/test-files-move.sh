#!/bin/bash
# Directories with names in them are renamed (style = file): all or nothing, for all hosts, and of several hosts that rename one to the
# same name one succeeds, as Borg's lock relies on. A name below the new one that came to be there without its directory is found.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

start_plain_hosts

move() {
    timeout "$deadline" "$python" "$tests/system/files/files_move.py" "$@"
}
expect_equal "what is wrong" "" "$(move cases "$dir/A/files" "$dir/B/files" 2>&1)"

# Two on each host take the lock, so often each.
turns=15
echo 0 >"$dir/counter"
for name in A1 A2 B1 B2; do
    start "count-$name" "$python" -u "$tests/system/files/files_move.py" count "$dir/${name%?}/files" "$name" "$turns" "$dir/counter"
done
for name in A1 A2 B1 B2; do
    wait_until "$deadline" gone "count-$name"
    expect_equal "$name" "done $turns" "$(<"$dir/count-$name.out")"
done
[ "$(<"$dir/counter")" = $((4 * turns)) ] || violation "two had the lock at a time: $((4 * turns)) turns, $(<"$dir/counter") counted"
expect_equal "what is left" "" "$(at A ls -A)"

# A directory is gone, and what was in it is not: as when another host has made that between the look and the removal of rmdir.
at A mkdir lock own
at A touch lock/theirs own/mine
case ${STORE:-zookeeper} in
    zookeeper) zookeeper delete /dlockfs/files/lock ;;
    etcd) etcd del /dlockfs/files/lock >/dev/null ;;
esac
fails_at B "Directory not empty" "$python" -c 'import os; os.rename("own", "lock")'
for host in A B; do
    says_at "$host" theirs ls lock
    says_at "$host" mine ls own
done
says_at B lock ls -d lock
at B rm -r own lock
