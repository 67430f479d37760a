#!/bin/bash
# Directories with names in them are renamed (style = file): all or nothing, for all hosts, and of several hosts that rename one to the
# same name one succeeds. So Borg's lock excludes. A name below the new one that came to be there without its directory is found.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lasting.sh
. "$tests/system/lasting.sh"

requires /usr/bin/python3 -c 'import borg.locking'
"start_${STORE:-zookeeper}"
files_config files
for host in A B; do
    start_dlockfs "$host" --config "$dir/files.ini" --session-timeout 60s
done
wait_until "$deadline" at A mkdir ready 2>/dev/null # a session may have to prove itself first
at A rmdir ready

move() {
    timeout "$deadline" /usr/bin/python3 "$tests/system/files_move.py" "$@"
}
expect_equal "what is wrong" "" "$(move cases "$dir/A/files" "$dir/B/files" 2>&1)"

# counts WHAT TURNS: two on each host, so often each.
counts() {
    local what=$1 turns=$2 name
    echo 0 >"$dir/counter"
    for name in A1 A2 B1 B2; do
        case $what in
            count) start "$what-$name" "$python" -u "$tests/system/files_move.py" count "$dir/${name%?}/files" "$name" "$turns" "$dir/counter" ;;
            borg) start "$what-$name" /usr/bin/python3 -u "$tests/system/files_move.py" borg "$dir/${name%?}/files/repo" "$turns" "$dir/counter" ;;
        esac
    done
    for name in A1 A2 B1 B2; do
        wait_until "$deadline" gone "$what-$name"
        expect_equal "$what, $name" "done $turns" "$(<"$dir/$what-$name.out")"
    done
    [ "$(<"$dir/counter")" = $((4 * turns)) ] || violation "$what: two had the lock at a time: $((4 * turns)) turns, $(<"$dir/counter") counted"
}
counts count 15
counts borg 5
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
