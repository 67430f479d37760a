#!/bin/bash
# The guard of a daemon that was killed does not end the mount at the end of the lease that it knows of, if another daemon has gone
# on since and renewed that lease, however short this one has lived. (The guard looks for another daemon once a second, so this
# is done several times.)
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

lease_left() {
    sed -n 's/^lease_left_ms=//p' "$dir/A/.dlockfs/status"
}

is_renewed() {
    renewed=$(lease_left)
    [ "$renewed" -gt 10000 ]
}

# at TIME: waits for it.
at() {
    lease signal $$ CONT "$1" >/dev/null
}

# die: the daemon is killed, and the next one is not started before go_on.
die() {
    before=$(gone_on A)
    pause manager-A
    send_signal A KILL
}

go_on() {
    resume manager-A
    wait_until "$deadline" gone_on_more A "$before"
}

# play LOCK: until a daemon went on in time, but for a machine that is too busy.
play() {
    local round end early=0
    start_kept A --session-timeout 20s
    keep holder "$dir/A/$1" flock
    wait_until "$deadline" granted holder
    for ((round = 0; early <= 0 && round < 2; round++)); do
        end=$(($(lease now) + $(lease_left)))
        die
        at $((end - 9000))
        go_on
        wait_until "$deadline" is_renewed
        die
        early=$((end - $(lease now)))
        at $((end + 700))
        go_on
        not_fenced holder
        echo "the second daemon died $early ms before the end of the first one's lease, and had $renewed ms left"
    done
    [ "$early" -le 0 ] || touch "$test_dir/counted"
    release holder
    stop_kept A
}

start_zookeeper
for lock in one two three; do
    scene "$lock" play "$lock"
done
scenes_end
[ -e "$test_dir/counted" ] || fail "no daemon went on in time"
