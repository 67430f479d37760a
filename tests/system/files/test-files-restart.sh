#!/bin/bash
# Lock files (style = file) lose nothing when the daemon is killed or another one goes on in its place: names,
# contents, links, times and open files stay, and stay this host's. A call that was under way returns once, and what it says is
# true on both hosts.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

start_two_hosts

# change HOW: the daemon of A is replaced in that way.
change() {
    local before
    case $1 in
        program)
            before=$(gone_on A)
            send_signal A USR2
            wait_until "$deadline" gone_on_more A "$before"
            ;;
        *) "$1" A ;;
    esac
}

# What is there on a host, in all that stat(1) shows of it; no access times.
state_on() {
    # shellcheck disable=SC2016
    at "$1" bash -c '
        find . -mindepth 1 | LC_ALL=C sort | xargs -d "\n" stat -c "%n %F %i %h %s %a %u %Y.%y"
        cat plain dir/inner moved
        readlink symbolic'
}

at A bash -c '
    umask 027
    echo text >plain
    ln plain second
    ln second third
    ln plain fourth
    ln -s someone@host symbolic
    mkdir dir
    echo inside >dir/inner
    touch -d "2020-02-02 02:02:02 UTC" dir/inner
    echo new >new
    mv new moved'
# Three names of one content, of which that goes that the others came from.
at A bash -c 'echo ring >ring; ln ring ring2; ln ring ring3; rm ring'
exec {open}<>"$dir/A/files/plain"
exec {unlinked}<>"$dir/A/files/unlinked"
echo unlinked >&"$unlinked"
rm "$dir/A/files/unlinked"
for name in plain second third fourth; do
    says_at A 4 stat -c %h "$name"
done
same_times() {
    [ "$(at A stat -c %Y.%y.%Z.%z dir)" = "$(at B stat -c %Y.%y.%Z.%z dir)" ]
}
wait_until "$deadline" same_times
state_on A >"$dir/before"
state_on B >"$dir/before-B"

for way in crash program restart_kept leave crash crash; do
    change "$way"
    state_on A | diff "$dir/before" - || fail "another state on A after $way"
    state_on B | diff "$dir/before-B" - || fail "another state on B after $way"
    for name in plain second symbolic dir moved ring2; do
        fails_at B "File exists" ln -sT x "$name" # what is this host's
        fails_at A "File exists" ln -sT x "$name"
    done
    expect_equal "the open file after $way" text "$(cat "/proc/self/fd/$open")"
    expect_equal "the file without a name after $way" unlinked "$(timeout "$deadline" "$python" -c '
import os, sys
print(os.pread(int(sys.argv[1]), 100, 0).decode(), end="")' "$unlinked")"
done
# The links are still one content.
echo TEXT >&"$open"
for name in plain second third fourth; do
    says_at A TEXT cat "$name"
    says_at B TEXT cat "$name"
done
at A rm plain
says_at A 3 stat -c %h second
says_at B 3 stat -c %h third
says_at A 2 stat -c %h ring2
exec {open}<&- {unlinked}<&-
at A rm -r second third fourth symbolic dir moved ring2 ring3
says_at B "" ls -A

# under_way EXPECTED CALL ARGUMENT...: a call of A waits for the servers when its daemon is killed; says this when another one goes on.
under_way() {
    local expected=$1
    shift
    settle A
    cut_link link
    start call env -C "$dir/A/files" "$python" "$tests/lib/one_call.py" "$@"
    wait_until "$deadline" asleep call
    crash A
    wait_until "$deadline" asleep call # that was its request, or another one before that
    join_link link
    finish call
    expect_equal "$* while the daemon was killed" "$expected" "$(<"$dir/call.out")"
}

# there HOST... NAME: the name is of A on both hosts.
is_there() {
    at A test -e "$1" || at A test -L "$1" || fail "$1 is not there on A"
    fails_at B "File exists" ln -sT x "$1"
    fails_at A "File exists" ln -sT x "$1"
}
is_not_there() {
    no_file A "$1" || fail "$1 is there on A"
    no_file B "$1" || fail "$1 is there on B"
}
at A bash -c 'printf one >file'
for ((round = 0; round < ${ROUNDS:-1}; round++)); do
under_way ok mkdir dir
is_there dir
under_way ok rmdir dir
is_not_there dir
under_way ok excl made
is_there made
under_way ok link file linked
is_there linked
says_at A 2 stat -c %h file
says_at B 2 stat -c %h file
under_way ok rename linked renamed # two names of one content: both stay
says_at B 2 stat -c %h renamed
under_way ok unlink renamed
is_not_there renamed
says_at B 1 stat -c %h file
under_way ok rename made new
is_not_there made
is_there new
under_way ok rename new file # in place of another one
is_not_there new
says_at B "" cat file
under_way ok overwrite file one
under_way ok append file two
says_at A onetwo cat file
says_at B onetwo cat file
under_way ok truncate file 3
says_at B one cat file
under_way ok chmod file 600
says_at B 600 stat -c %a file
under_way ok fsync file
under_way ok cut file
says_at B "" cat file
under_way ok symlink someone@host symbolic
says_at B someone@host readlink symbolic
is_there symbolic
at B mkdir other
under_way EEXIST mkdir other
under_way EEXIST excl other
under_way EEXIST link file other
at B rmdir other
at A rm symbolic
done
at A rm file
says_at A "" ls -A
says_at B "" ls -A

# The times of a directory are stored a moment after its names have changed, if need be by the next daemon.
at A mkdir dir
at A touch dir/first
for way in crash program; do
    wait_until "$deadline" same_times
    before=$(at B stat -c %.Y dir)
    at A bash -c ': >dir/a; rm dir/a; : >dir/b; rm dir/b'
    change "$way"
    changed() { [[ $(at B stat -c %.Y dir) > $before ]]; }
    wait_until "$deadline" changed
done
at A rm -r dir

# file_owner = process: the process ends while no daemon runs, and the next one takes its name away; of one that lives it sees the end.
gone_owned() {
    ! test -e "$dir/A/owned/$1" && ! test -e "$dir/B/owned/$1"
}
for name in ended lives; do
    owns "$name" "$name"
done
test -e "$dir/B/owned/ended" || fail "another host does not see the name"
dies A
release ended
goes_on A
wait_until "$deadline" gone_owned ended
test -e "$dir/A/owned/lives" || fail "the name of a process that lives is gone"
test -e "$dir/B/owned/lives" || fail "the name of a process that lives is gone from the other host"
release lives
wait_until "$deadline" gone_owned lives
stop_kept A
