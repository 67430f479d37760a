#!/bin/bash
# Lock files (style = file) while no daemon runs on the host that made them: another host takes names away, or their
# places, and processes end. The daemon that goes on finds that out, does nothing to what is another host's by now, and
# what it says of names, links and open files is true on both hosts.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

start_two_hosts

told() { # NAME: the daemon of A has said that somebody else has taken it
    grep -q "files/$1: lock file taken away, or replaced, by another host" "$dir/A.log"
}
# Files that are open: in a process of their own, as whoever closes one waits while no daemon runs.
mkfifo "$dir/orders"
holds() { # NAME...: below A
    start held env -C "$dir/A" "$python" -u "$tests/system/files/files_held.py" "$dir/orders" "$@"
    expect held open
    answers=1
}
# open_file EXPECTED ORDER...: see files_held.py
open_file() {
    echo "${*:2}" >"$dir/orders"
    answers=$((answers + 1))
    wait_until "$deadline" answered
    expect_equal "${*:2}" "$1" "$(tail -n 1 "$dir/held.out")"
}
answered() {
    [ "$(wc -l <"$dir/held.out")" -eq "$answers" ]
}

at A bash -c '
    for name in removed replaced renamed only1 both1 kept; do echo "$name of A" >"$name"; done
    ln only1 only2
    ln both1 both2
    mkdir dir other
    echo inner >dir/inner'
at B bash -c 'echo "child of B" >"$0"' other/child
says_at A "child of B" cat other/child
holds files/removed files/replaced files/both1 files/only1 files/both2
dies A
at B bash -c '
    rm removed replaced only1 both1 both2 dir/inner
    rmdir dir
    mkdir dir
    for name in replaced both2 dir/inner new; do echo "$name of B" >"$name"; done
    mv new renamed
    rm other/child'
goes_on A

# What B has taken is gone from A, and can be made there; what B has made is B's.
for name in removed only1 both1; do
    no_file A "$name" || fail "$name was removed on B, A finds it"
    wait_until "$deadline" told "$name"
done
for name in replaced renamed both2 dir/inner; do
    wait_until "$deadline" told "$name"
done
wait_until "$deadline" told dir
for name in replaced both2 dir/inner; do
    says_at A "$name of B" cat "$name"
done
says_at A "new of B" cat renamed
no_file A other/child || fail "other/child was removed on B, A finds it"
says_at A 1 stat -c %h only2
says_at A "only1 of A" cat only2
says_at A 1 stat -c %h both2
told kept && fail "A takes a name that it has for lost"
fails_at B "File exists" ln -sT x kept

# Files that are open have the former content, and change nothing that B has made.
open_file "EIO removed of A" say 0
open_file "EIO replaced of A" say 1
open_file "EIO both1 of A" say 2
open_file "ok only1 of A" say 3
open_file "EIO both1 of A" say 4 # two open files of one content, without a name
for number in 0 1 2; do
    open_file ok write "$number" written
done
says_at B "replaced of B" cat replaced
says_at B "both2 of B" cat both2
no_file B removed || fail "a write has made the name again"
open_file ok write 3 written # the content has a name left
says_at B "writtenf A" cat only2
says_at A "writtenf A" cat only2

# The same with the next daemon.
crash A
open_file "EIO written of A" say 0
open_file "ok writtenf A" say 3
says_at A 1 stat -c %h only2
at A bash -c 'echo again >removed; mkdir only1'
says_at B again cat removed
fails_at B "File exists" ln -sT x only1
release held
at A rmdir only1
at A rm removed

# file_owner = process, of a process that has ended meanwhile: all names of its content go, but no name that is B's by now.
owns maker first
ln "$dir/A/owned/first" "$dir/A/owned/second"
mv "$dir/A/owned/second" "$dir/A/owned/third"
owns other taken
ln "$dir/A/owned/taken" "$dir/A/owned/left"
holds owned/first
dies A
release maker other
rm "$dir/B/owned/taken"
echo "taken by B" >"$dir/B/owned/taken"
goes_on A
gone_owned() {
    local name
    for name in first second third left; do
        ! test -e "$dir/A/owned/$name" && ! test -e "$dir/B/owned/$name" || return 1
    done
}
wait_until "$deadline" gone_owned
expect_equal "what B has made" "taken by B" "$(<"$dir/B/owned/taken")"
expect_equal "what A finds" "taken by B" "$(<"$dir/A/owned/taken")"
open_file "ok" say 0
release held
rm "$dir/B/owned/taken"

# lost_while NAME COMMAND: the program waits for the servers when the daemon of A is killed, and what that one has sent is lost; B runs the
# command before another daemon goes on.
lost_while() {
    wait_until "$deadline" asleep "$1"
    wait_until "$deadline" grep -q "^uid=0 waiters=1 " "$dir/A/.dlockfs/users"
    crash A
    asleep "$1" || fail "$1 did not wait for the daemon: $(<"$dir/$1.out")"
    touch "$dir/link/refuse"
    wait_until "$deadline" link_refuses
    at B bash -c "$2"
    rm "$dir/link/ready"
    join_link link
    rm "$dir/link/refuse"
    wait_until "$deadline" test -e "$dir/link/ready"
}
# silent: A finds its own names at once, as they are watched, and does not hear from the servers any more.
silent() {
    settle A
    wait_until "$deadline" watched
    cut_link link
}
watched() {
    local files watches
    files=$(sed -n 's/^files=//p' "$dir/A/.dlockfs/status")
    watches=$(sed -n 's/^dlockfs_store_operation_seconds_count{operation="watch"} //p' "$dir/A/.dlockfs/metrics")
    [ "$watches" -ge "$files" ]
}
# meanwhile EXPECTED COMMAND CALL ARGUMENT...: what the call of A says, if B runs the command meanwhile.
meanwhile() {
    silent
    start call env -C "$dir/A/files" "$python" "$tests/lib/one_call.py" "${@:3}"
    lost_while call "$2"
    finish call
    expect_equal "${*:3} while on B: $2" "$1" "$(<"$dir/call.out")"
}
link_refuses() {
    # shellcheck disable=SC2188
    ! (: <"/dev/tcp/$(tr : / <"$dir/link/address")")
}
is_of_B() {
    says_at A "of B" cat "$1"
    says_at B "of B" cat "$1"
    at B rm "$1"
}
at A bash -c 'for name in 1 2 3 4 5 6; do echo "of A" >"own$name"; done'
crash A # so that all watches are of one process
meanwhile EEXIST 'mkdir made' mkdir made
at B rmdir made
meanwhile EEXIST 'echo "of B" >made' excl made
is_of_B made
meanwhile EEXIST 'echo "of B" >made' link own1 made
is_of_B made
meanwhile ENOENT 'rm own2' link own2 made
no_file B made || fail "a link to what is gone is there"
# rename asks the servers what it renames, and that is B's by then.
meanwhile ok 'rm own3; echo "of B" >own3' rename own3 made
no_file B own3 || fail "the former name is there"
is_of_B made
meanwhile ok 'echo "of B" >made' rename own4 made
says_at B "of A" cat made
no_file B own4 || fail "the former name is there"
meanwhile ok 'rm own5; echo "of B" >own5' unlink own5
is_of_B own5
# A file that is open has the former content.
holds files/own6
silent
echo "write 0 by" >"$dir/orders"
lost_while held 'rm own6; echo "of B" >own6'
expect held ok
answers=2
open_file "EIO by A" say 0
is_of_B own6
release held
stop_kept A
