#!/bin/bash
# What one user may wait for in directories of lock files (style = file), while the servers do not answer: so many
# calls wait, and any further one is refused, whatever it is; other users are not. What is refused has done nothing, and what
# waited goes on.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

requires command -v setpriv
flooder=12345 other=23456
requires setpriv "--reuid=$flooder" "--regid=$flooder" --clear-groups -- true

"start_${STORE:-zookeeper}"
start_proxy link
# The kernel locks a directory while a call changes it: calls that are to wait at once are in directories of their own.
folders=(calls wait1 wait2 wait3 wait4 wait5 wait6 others root)
{
    printf '%s\n' '[mount]' 'user_waiters = 3' "directories = ${folders[*]}"
    for folder in "${folders[@]}"; do
        printf '%s\n' "[locks \"$folder\"]" 'style = file' 'try_limit = 60s'
    done
} >"$dir/files.ini"
start_kept A --config "$dir/files.ini" --session-timeout 120s --store "$(proxied link)"
start_dlockfs B --config "$dir/files.ini" --session-timeout 120s

# start_as USER-ID NAME COMMAND...
start_as() {
    start "$2" setpriv "--reuid=$1" "--regid=$1" --clear-groups -- "${@:3}"
}

for_others "$tests/lib/call_result.py" >/dev/null # which the next one is in need of

# calls_as USER-ID NAME CALL ARGUMENT...: a call of the user, in the mount of A.
calls_as() {
    start_as "$1" "$2" env -C "$dir/A" "$python" -u "$(for_others "$tests/lib/one_call.py")" "${@:3}"
}

# waits USER-ID NAME CALL ARGUMENT...: the same, of a call that waits for the servers.
waits() {
    calls_as "$@"
    wait_until "$deadline" asleep "$2"
}

# has HOST COUNTS: whether that is what the user who waits has there.
has() {
    local line
    line=$(grep "^uid=$flooder " "$dir/$1/.dlockfs/users" || true)
    [[ "$line " == *" $2 "* ]]
}

metric() {
    grep -F "$1" "$dir/A/.dlockfs/metrics" | sed 's/.* //'
}

# Three calls wait. Each further one is refused, whether it asks the servers about a name, a list, or an open file.
start_as "$flooder" calls "$python" -u "$(for_others "$tests/system/files/files_limits.py")" "$dir/A/calls" "$dir/go"
expect calls ready
cut_link link
waits "$flooder" first mkdir wait1/made
waits "$flooder" second excl wait2/made
waits "$flooder" third symlink target wait3/made
wait_until "$deadline" has A waiters=3
go go
finish calls "$prompt"
expect_equal "further calls" "17 ENOLCK" \
    "$(sed -n 's/.* //; /ready/!p' "$dir/calls.out" | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd,)"
grep -q "warning: user $flooder has reached user_waiters = 3: its calls fail with ENOLCK" "$dir/A.log"
[ "$(metric 'dlockfs_limit_refusals_total{limit="user_waiters"}')" -ge 17 ] || fail "refusals are not counted"
waits "$other" other mkdir others/made
waits 0 root mkdir root/made
wait_until "$deadline" has A waiters=3
join_link link
for name in first second third other root; do
    expect "$name" ok
done
wait_until "$deadline" has A "waiters=0 files=0"
expect_equal "names that are there" "directory old own" \
    "$(cd "$dir/B/calls" && LC_ALL=C find . -mindepth 1 -printf '%P\n' | sort | paste -sd' ')"
expect_equal "the file that was not changed" "600 text" "$(stat -c %a "$dir/B/calls/own") $(<"$dir/B/calls/own")"
for name in 1 2 3; do
    [ -e "$dir/B/wait$name/made" ] || [ -L "$dir/B/wait$name/made" ] || fail "wait$name/made is not there"
done
wait_until "$deadline" has A names=6

# A name is looked up before a call makes it, and both may be refused: here the second, as the limit is lower by then.
reload() { # WAITERS
    before=$(grep -c 'read anew' "$dir/A.log" || true)
    sed -i "s/^user_waiters = .*/user_waiters = $1/" "$dir/files.ini"
    send_signal A HUP
    wait_until "$deadline" reloaded
}
reloaded() {
    [ "$(grep -c 'read anew' "$dir/A.log")" -gt "$before" ]
}
watched() {
    [ "$(metric 'dlockfs_store_operation_seconds_count{operation="watch"}')" -gt "$watches" ]
}
# A name of this host is found at once when it is watched.
for name in wait5/own wait6/own; do
    watches=$(metric 'dlockfs_store_operation_seconds_count{operation="watch"}')
    calls_as "$flooder" owner excl "$name"
    finish owner
    wait_until "$deadline" watched
done
wait_until "$deadline" has A "waiters=0 files=0 names=8"
reload 7
(umask 0 && : >"$dir/A/job")
hold holder "$dir/A/job"
expect holder held
start_as "$flooder" lock flock "$dir/A/job" true # waits all the time
wait_claims job 2
cut_link link
waits "$flooder" call-mkdir mkdir wait1/refused
waits "$flooder" call-symlink symlink target wait2/refused
waits "$flooder" call-excl excl wait3/refused
waits "$flooder" call-cut cut wait4/refused
waits "$flooder" call-link link wait5/own wait5/refused
waits "$flooder" call-rename rename wait6/own wait6/refused
wait_until "$deadline" has A waiters=7
reload 1
join_link link
expect call-cut ENOENT # it makes no name
for name in mkdir symlink excl link rename; do
    expect "call-$name" ENOLCK
done
for name in mkdir symlink excl link rename; do
    finish "call-$name"
done
wait_until "$deadline" has A "waiters=1 files=1 names=8"
expect_equal "names that were refused" "" "$(find "$dir"/B/wait? -name refused)"
expect_equal "what has got no other name" "1 1" "$(stat -c %h "$dir/B/wait5/own" "$dir/B/wait6/own" | paste -sd' ')"
release lock holder

# A lower limit takes nothing away from what waits, also where the next process of the daemon handles it again.
reload 3
settle A
cut_link link
waits "$flooder" call-mkdir mkdir wait1/late
waits "$flooder" call-excl excl wait2/late
waits "$flooder" call-link link wait5/own wait5/late
wait_until "$deadline" has A waiters=3
reload 1
crash A
for name in mkdir excl link; do
    asleep "call-$name" || fail "$name did not wait for the daemon: $(<"$dir/call-$name.out")"
done
wait_until "$deadline" has A "waiters=3 files=0 names=8"
join_link link
wait_until "$deadline" eval '[ "$(cat "$dir"/call-{mkdir,excl,link}.out | wc -l)" -eq 3 ]'
wait_until "$deadline" has A "waiters=0 files=0"

# An open counts from its CREATE on, until the servers have decided, also if the caller is killed: here each takes two seconds.
echo 1000 >"$dir/link/delay"
start_dlockfs C --config "$dir/files.ini" --session-timeout 120s --store "$(proxied link)"
slow() { # NAME
    start_as "$flooder" "$1" env -C "$dir/C" "$python" -u "$(for_others "$tests/lib/one_call.py")" excl "wait1/$1"
    wait_until "$deadline" has C "waiters=1 files=1 names=1"
}
slow killed
release killed
wait_until "$deadline" has C "waiters=0 files=0"
rm -f "$dir/C/wait1/killed"
slow ends
expect ends ok
wait_until "$deadline" has C "waiters=0 files=0 names=1"
