#!/bin/bash
# The wall clock of a host is set forward and back by a day while locks are held and waited for: nothing is lost, heartbeats
# go on, locks change hands, and the lease still ends in time when the link is cut.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

preload=$build/tests/system/wall_clock.so
[ -e "$preload" ] || fail "not built: $preload"
export TEST_WALL_CLOCK=$dir/wall-clock
day=86400

# set_clock SECONDS: sets A's wall clock so much wrong. A new file there tells whether that is so.
set_clock() {
    local off
    echo "$1" >"$TEST_WALL_CLOCK.new"
    mv "$TEST_WALL_CLOCK.new" "$TEST_WALL_CLOCK"
    : >"$dir/A/made-at$1"
    off=$(($(stat -c %Y "$dir/A/made-at$1") - EPOCHSECONDS - $1))
    if [ "$off" -lt -60 ] || [ "$off" -gt 60 ]; then
        fail "A's wall clock is not wrong by $1 s but by $((off + $1)) s"
    fi
}

start_zookeeper
start_proxy link
# A sanitizer minds whatever is loaded before it.
LD_PRELOAD=$preload ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
    launch_dlockfs A --session-timeout 10s --store "$(proxied link)"
wait_until "$deadline" mount_settled A
start_dlockfs B --session-timeout 10s

# None of these makes a call meanwhile that would prove the session.
call holder-flock "$dir/A/flock" open ex watch hold
expect holder-flock "ex ok"
call holder-excl "$dir/A/excl" excl watch hold
expect holder-excl "excl ok"
call other-flock "$dir/B/other-flock" open ex hold
expect other-flock "ex ok"
call other-excl "$dir/B/other-excl" excl hold
expect other-excl "excl ok"
for kind in flock excl; do
    keep "rival-$kind" "$dir/B/$kind" "$kind"
    wait_claims "$kind" 2
    keep "waiter-$kind" "$dir/A/other-$kind" "$kind"
    wait_claims "other-$kind" 2
done
queues() {
    local lock
    for lock in flock excl other-flock other-excl; do
        zookeeper claims "/dlockfs/$lock"
    done
}
before=$(queues)
nothing_lost() {
    if grep '^watch .*ERR' "$dir"/holder-*.out; then
        fail "a holder has lost its lock"
    fi
    if grep 'lost\|giving it up\|expired' "$dir"/[AB].log; then
        fail "a jump of the wall clock did that"
    fi
}

for jump in $day -$day; do
    set_clock "$jump"
    # Longer than a session lives without heartbeats, and a lease.
    sleep 10.5
    nothing_lost
    for kind in flock excl; do
        not_granted "rival-$kind"
        not_granted "waiter-$kind"
    done
    expect_equal "the queues" "$before" "$(queues)"
done

# Hand-over in both directions, right after a jump: to A, from A.
set_clock $day
release other-flock
wait_until "$deadline" granted waiter-flock
set_clock -$day
release other-excl
wait_until "$deadline" granted waiter-excl
release holder-flock
wait_until "$deadline" granted rival-flock
# What waits no longer leaves the queue when its time is over.
expect_status 1 flock -w 0.2 "$dir/A/flock" true
wait_claims flock 1
nothing_lost
release waiter-flock waiter-excl rival-flock rival-excl holder-excl

# A lease that would end a day later by that clock.
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep rival "$dir/B/job" flock
wait_claims job 2
cut=$(lease now)
cut_link link
fenced_first "$cut" holder rival
join_link link
wait_until "$deadline" flock -n "$dir/A/free" true
never_revived holder
