#!/bin/bash
# kill -9 of a daemon: the other host gets its locks after the session timeout and not before; the daemon is started again
# over the dead mount.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 4s
start_dlockfs B --session-timeout 4s

call holder "$dir/A/job" open ex hold
expect holder "ex ok"
call waiter-a "$dir/A/job" open ex hold
wait_claims job 2
call waiter "$dir/B/job" open ex hold
wait_claims job 3

kill_dlockfs A
begin=$(now_ms)
# Whoever waited there gets an error, and the dead mount is there and says so.
wait_until 5 grep -q '^ex E' "$dir/waiter-a.out"
refused stat "$dir/A/job" 2>"$dir/stat.err"
grep -q 'not connected' "$dir/stat.err" || fail "unexpected: $(<"$dir/stat.err")"
expect waiter "ex ok"
[ $(($(now_ms) - begin)) -ge 2000 ] || fail "the lock was given away before the session was over"

start_dlockfs A --session-timeout 4s
expect_status 1 flock -n "$dir/A/job" true
flock -n "$dir/A/other" true
release waiter
comes_free "$dir/A/job"
release holder waiter-a
expect_equal "mounts at A" 1 "$(grep -c " $dir/A " /proc/self/mounts)"
