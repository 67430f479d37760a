#!/bin/bash
# ZooKeeper is restarted while locks are held and waited for: the session goes on, holders keep their locks and
# waiters their places.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 120s
start_dlockfs B --session-timeout 120s

call holder "$dir/A/job" open ex await="$dir/un" un ex-nb un close hold
expect holder "ex ok"
call opened "$dir/B/other" excl await="$dir/close" write=still close
expect opened "excl ok"
hold reader -s "$dir/B/shared"
expect reader held
call waiter1 "$dir/B/job" open ex hold
wait_claims job 2
call waiter2 "$dir/A/job" excl hold
wait_claims job 3
before=$(zookeeper claims /dlockfs/job)

stop_zookeeper
# Requests without the store: one that would wait does, the next is refused later; and what needs no store works.
call late "$dir/A/job" open ex hold
wait_until "$deadline" asleep late
soon ls "$dir/A" >"$dir/ls.out"
soon stat "$dir/A/job" >"$dir/ls.out"
if said waiter1 "ex ok" || said waiter2 "excl ok" || said late "ex ok"; then
    fail "a lock was granted without the store"
fi
start_zookeeper

wait_claims job 4
flock "$dir/B/connected" true
expect_equal "claims after the restart" "$before" "$(zookeeper claims /dlockfs/job | sed -n 1,3p)"
expect_status 1 flock -n "$dir/B/job" true
expect_status 1 flock -n "$dir/A/other" true
flock -n -s "$dir/A/shared" true
expect_status 1 flock -n -x "$dir/A/shared" true
if said waiter1 "ex ok" || said waiter2 "excl ok" || said late "ex ok"; then
    fail "a waiter got what is held"
fi

go un
expect waiter1 "ex ok"
release waiter1
expect waiter2 "excl ok"
release waiter2
expect late "ex ok"
release late
go close
finish opened
expect_equal "held by exclusive open" "write 5,close ok" "$(tail -n 2 "$dir/opened.out" | paste -sd,)"
comes_free "$dir/A/other"

# A release while the server is away is not forgotten.
call leaver "$dir/A/away" open ex await="$dir/away" close hold
expect leaver "ex ok"
call next "$dir/B/away" open ex hold
wait_claims away 2
stop_zookeeper
go away
expect leaver "close ok"
start_zookeeper
expect next "ex ok"
release next leaver holder
wait_claims away 0
