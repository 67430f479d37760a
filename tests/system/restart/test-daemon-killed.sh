#!/bin/bash
# kill -9 of a daemon with holders and waiters, and a new one at once over the dead mount: what the former session holds
# is nobody's, on that host too, until the session is over and not before; then waiters follow in the order of the queue.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 16s
start_dlockfs B --session-timeout 16s

grep -qx 'survives_kill=no' "$dir/A/.dlockfs/status"
call holder "$dir/A/job" open ex await="$dir/dead" fsync ex-nb write=mine read hold
expect holder "ex ok"
call opened "$dir/A/own" excl hold
expect opened "excl ok"
call waiter-a "$dir/A/job" open ex hold
wait_claims job 2
call waiter-b "$dir/B/job" open ex hold
wait_claims job 3
former=$(zookeeper claims /dlockfs/job | sed -n 1,2p)

kill_dlockfs A
begin=$(now_ms)
# Whoever waited there gets an error, and the dead mount is there and says so.
wait_until "$deadline" grep -q '^ex E' "$dir/waiter-a.out"
refused stat "$dir/A/job" 2>"$dir/stat.err"
grep -q 'not connected\|connection abort' "$dir/stat.err" || fail "unexpected: $(<"$dir/stat.err")"

start_dlockfs A --session-timeout 16s
# Nobody but the former session has claims on this one.
expect_status 1 flock -n "$dir/A/own" true
call own "$dir/A/own" open ex hold
call next-a "$dir/A/job" open ex hold
wait_claims own 2
wait_claims job 4
first=$(zookeeper claims /dlockfs/job | sed -n 1,2p)
[ $(($(now_ms) - begin)) -gt 13000 ] || expect_equal "the former session's claims" "$former" "$first"
go dead
wait_until "$deadline" grep -q '^read' "$dir/holder.out"
expect_equal "who held, on the dead mount" "fsync ENOTCONN,ex-nb ENOTCONN,write ENOTCONN,read ENOTCONN" \
    "$(tail -n 4 "$dir/holder.out" | paste -sd,)"

expect waiter-b "ex ok"
[ $(($(now_ms) - begin)) -ge 8000 ] || fail "the lock was given away before the session was over"
expect own "ex ok"
expect_status 1 flock -n "$dir/A/job" true
flock -n "$dir/A/other" true
if said next-a "ex ok"; then
    fail "it went before the other host's waiter, which had come earlier"
fi
release waiter-b
expect next-a "ex ok"
release next-a own
comes_free "$dir/B/job"
comes_free "$dir/B/own"
release holder opened waiter-a
expect_equal "mounts at A" 1 "$(grep -c " $dir/A " /proc/self/mounts)"
