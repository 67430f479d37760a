#!/bin/bash
# A daemon and its guard are stopped for longer than the session lives, as when a host is suspended, and another host gets
# the locks: when they go on, not one call on a handle that held succeeds, and its waiters queue again. A short stop changes
# nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_slow_ensemble 10000
start_dlockfs A --session-timeout 10s
start_dlockfs B --session-timeout 2m

# Short: the lease lasts at least 4.7 s after the stop (0.6 x 10 s, less a heartbeat of 1.25 s).
keep_contended
before=$(zookeeper claims /dlockfs/flock; zookeeper claims /dlockfs/excl)
pause A
sleep 1
resume A
sleep 1
for kind in flock excl; do
    not_fenced "holder-$kind"
    not_granted "rival-$kind"
done
expect_equal "the queues after a short stop" "$before" "$(zookeeper claims /dlockfs/flock; zookeeper claims /dlockfs/excl)"
release holder-flock holder-excl rival-flock rival-excl

# Long. Each of the first calls in turn, made while the daemon is stopped and made when it goes on again.
calls=("fsync read" "write=more read" "read read" "ex-nb read" "truncate=0 read")
for number in "${!calls[@]}"; do
    for kind in "open ex" excl; do
        name=$number-${kind%% *}
        # shellcheck disable=SC2086
        call "during-$name" "$dir/A/$name" $kind await="$dir/stopped" ${calls[number]} hold
        expect "during-$name" "${kind##* } ok"
        # shellcheck disable=SC2086
        call "after-$name" "$dir/A/after-$name" $kind await="$dir/resumed" ${calls[number]} hold
        expect "after-$name" "${kind##* } ok"
    done
done
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep rival "$dir/B/job" flock
wait_claims job 2
keep waiter "$dir/A/job" flock
wait_claims job 3
for name in {during,after}-{0,1,2,3,4}-{open,excl}; do
    keep "rival-$name" "$dir/B/${name#during-}" flock
done
for name in {,after-}{0,1,2,3,4}-{open,excl}; do
    wait_claims "$name" 2
done

answered() { # the last two calls
    [ "$(grep -Ec '^(fsync|write|read|ex-nb|truncate) ' "$dir/$1.out")" -eq 2 ]
}
cut=$(lease now)
suspend A
go stopped
for name in {0,1,2,3,4}-{open,excl}; do
    wait_until "$deadline" asleep "during-$name"
done
wait_until "$deadline" granted rival
for name in {during,after}-{0,1,2,3,4}-{open,excl}; do
    wait_until "$deadline" granted "rival-$name"
done
awake A
go resumed
for name in {during,after}-{0,1,2,3,4}-{open,excl}; do
    wait_until "$deadline" answered "$name"
    expect_equal "what $name saw" "EIO EIO" "$(tail -n 2 "$dir/$name.out" | cut -d' ' -f2 | paste -sd' ')"
done
wait_until "$deadline" fenced holder
echo "stop to grant $(($(time_of rival granted) - cut)) ms, stop to fence (after it) $(($(time_of holder fenced) - cut)) ms"

wait_claims job 2
not_granted waiter
release rival
wait_until "$deadline" granted waiter
never_revived holder
not_fenced waiter
