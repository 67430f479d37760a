#!/bin/bash
# ZooKeeper is not there when the daemon starts: it mounts, waits of non-blocking calls are bounded and end with ENOLCK, blocking ones
# wait or end after their limit, can be interrupted and killed, and go on when the server comes.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

zookeeper_configure zk "$(free_port)"
store=zookeeper://$(zookeeper_address)/dlockfs
touch "$dir/zk/started"

start_dlockfs A -o try_limit=1s
start_dlockfs B -o wait_limit=1s,try_limit=500ms
soon ls "$dir/A"
soon touch "$dir/A/touched"

# A start in the background is no failure either, and in time.
mkdir "$dir/C"
begin=$(now_ms)
timeout "$deadline" "$dlockfs" --store "$store" "$dir/C"
is_mounted "$dir/C"
[ $(($(now_ms) - begin)) -lt 15000 ] || fail "the start took too long"
umount "$dir/C"

# Nor is a host without a network, whose servers have names: the message says what is wrong.
mkdir "$dir/D"
requires unshare -n true
start nowhere unshare -n "$dlockfs" --foreground --store zookeeper://zk.example.org/locks "$dir/D"
wait_until "$deadline" grep -q "no address of a ZooKeeper server of zk.example.org:2181 can be found: .*; trying again every 1 s" \
    "$dir/nowhere.out"
wait_until "$deadline" is_mounted "$dir/D"
send_signal nowhere TERM
finish nowhere

begin=$(now_ms)
call try "$dir/A/job" open ex-nb sh-nb excl-nb
finish try
[ $(($(now_ms) - begin)) -ge 1000 ] || fail "gave up before try_limit"
expect_equal "tries" "open ok,ex-nb ENOLCK,sh-nb ENOLCK,excl-nb ENOLCK" "$(paste -sd, "$dir/try.out")"
# flock(1) reports it as an error of the system, not as a conflict.
expect_status 71 timeout "$deadline" flock -n -E 3 "$dir/A/job" true 2>"$dir/flock.err"
grep -qi 'no locks available' "$dir/flock.err"

call limited "$dir/B/job" open ex excl
finish limited
expect_equal "waits with a limit" "open ok,ex ENOLCK,excl ENOLCK" "$(paste -sd, "$dir/limited.out")"

call waiter1 "$dir/A/job" open ex hold
expect waiter1 "open ok"
wait_until "$deadline" asleep waiter1
call waiter2 "$dir/A/job" excl hold
wait_until "$deadline" asleep waiter2
call killed "$dir/A/job" excl hold
wait_until "$deadline" asleep killed
kill -KILL "$(pid killed)"
wait_until "$prompt" gone killed
call interrupted "$dir/A/job" open alarm=0.2 ex
finish interrupted
expect_equal "interrupted" "open ok,alarm ok,ex EINTR" "$(paste -sd, "$dir/interrupted.out")"

start_zookeeper
expect waiter1 "ex ok"
wait_claims job 2
release waiter1
expect waiter2 "excl ok"
release waiter2
wait_claims job 0
wait_until "$deadline" flock -n "$dir/B/job" true # when it has found the server, too

# Both end well while the server is away.
hold holder "$dir/A/job"
expect holder held
stop_zookeeper
stop_dlockfs B
stop_dlockfs A
