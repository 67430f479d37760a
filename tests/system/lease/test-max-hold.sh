#!/bin/bash
# With max_hold, who has held a lock for that time has lost it: by flock, exclusive open and dlockctl run, whose command is ended; so
# has with dlockctl run --max-hold who runs a command, where the lock has no such time. The log and the audit say so, and the next one gets the lock. No other lock is lost. A daemon that is killed meanwhile changes none of
# that. So on ZooKeeper, on etcd, and on one host alone.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

longest=6 # seconds
printf '[mount]\naudit = yes\n[locks]\nmax_hold = %ds\n[locks "any*"]\nmax_hold = 0ms\n' "$longest" >"$dir/dlockfs.ini"

# take HOST NAME KIND [FILE]: a program that takes the lock.
take() {
    since=$(lease now)
    keep "$2" "$dir/$1/${4:-$2}" "$3"
    wait_until "$deadline" granted "$2"
}

# loses NAME MILLISECONDS: it did not have the lock before then; not sooner than it should.
loses() {
    wait_until "$deadline" fenced "$1"
    local held=$(($(time_of "$1" fenced) - $2))
    echo "$1: lost after $held ms"
    [ "$held" -ge $((longest * 1000)) ] || fail "$1 lost its lock after $held ms"
    grep -q '^fenced EIO ' "$dir/$1.out" || fail "$1: $(<"$dir/$1.out")"
}

held() { # HOST LOCK
    grep -q '^position=1 state=held ' "$dir/$1/.dlockfs/locks/$2"
}

logged() { # HOST LINE
    grep -qE "$2" "$dir/$1.log"
}

on_this_store() { # KIND of the holder
    local begun
    start_kept A --session-timeout 1m --config "$dir/dlockfs.ini"
    take A any flock
    take A holder "$1"
    begun=$since
    keep rival "$dir/A/holder" flock
    # The shorter of the two times counts, of the option and of the key.
    start command "$dlockctl" --mount "$dir/A" run --max-hold 1h hung -- sleep infinity
    start own "$dlockctl" --mount "$dir/A" run --max-hold "$longest" any-own -- sleep infinity
    wait_until "$deadline" held A hung
    wait_until "$deadline" held A any-own
    crash A
    loses holder "$begun"
    wait_until "$deadline" granted rival
    expect_status 75 finish command
    expect_status 75 finish own
    grep -qE "^dlockctl: any-own: the lock is lost, after [0-9.]+ s, where --max-hold is $longest s; the command is told to end$" "$dir/own.out" ||
        fail "$(<"$dir/own.out")"
    wait_until "$deadline" logged A ': holder: process [0-9]* has held the lock for max_hold, which is 6000 ms: the lock is lost$'
    wait_until "$deadline" logged A 'audit: lost .*lock=holder'
    wait_until "$deadline" logged A ': any-own: process [0-9]* has held the lock for max_hold, which is 6000 ms: the lock is lost$'
    flock -n "$dir/A/hung" true || fail "the lock of the command is not free"
    not_fenced any
    release holder rival any
    stop_kept A
}

on_two_hosts() {
    start_dlockfs B --session-timeout 1m --config "$dir/dlockfs.ini"
    start_dlockfs C --session-timeout 1m --config "$dir/dlockfs.ini"
    take B held flock job
    local begun=$since
    keep next "$dir/C/job" flock
    loses held "$begun"
    wait_until "$deadline" granted next
    [ "$(time_of next granted)" -ge $((begun + longest * 1000)) ] || violation "the next one got it before"
    release held next
    stop_dlockfs B
    stop_dlockfs C
}

start_zookeeper
on_two_hosts
on_this_store flock
stop_zookeeper
store=local: on_this_store excl
start_etcd
on_two_hosts
on_this_store excl
