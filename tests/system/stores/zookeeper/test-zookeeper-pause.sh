#!/bin/bash
# ZooKeeper stands still for a time shorter than the session timeout while locks are held and waited for: nothing is lost,
# nobody gets what is held, and everything goes on afterwards.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 2m
start_dlockfs B --session-timeout 2m

call holder "$dir/A/job" open ex await="$dir/close" fstat close hold
expect holder "ex ok"
call waiter1 "$dir/B/job" open ex hold
wait_claims job 2
call waiter2 "$dir/A/job" excl hold
wait_claims job 3

pause zk
begin=$(now_ms)
call late "$dir/B/job" open ex hold
call elsewhere "$dir/B/elsewhere" excl hold
call killed "$dir/A/job" excl hold
call interrupted "$dir/A/interrupted" open alarm=0.2 ex alarm=0.2 sh hold
for name in late elsewhere killed; do
    wait_until "$deadline" asleep "$name"
done
# Waits are interruptible also while nothing answers, and what needs no store works.
expect interrupted "sh EINTR"
kill -KILL "$(pid killed)"
wait_until "$prompt" gone killed
soon ls -l "$dir/A" >"$dir/ls.out"
soon touch "$dir/A/new"
# A good part of the lease of 72 s.
while [ $(($(now_ms) - begin)) -lt 20000 ]; do
    sleep 0.1
done
for name in waiter1:ex late:ex waiter2:excl elsewhere:excl; do
    if said "${name%:*}" "${name#*:} ok"; then
        fail "${name%:*} was granted a lock without the store"
    fi
done
resume zk

expect elsewhere "excl ok"
wait_claims job 4
wait_claims interrupted 0
go close
expect holder "close ok"
expect_equal "what the holder saw" "fstat ok,close ok" "$(tail -n 2 "$dir/holder.out" | paste -sd,)"
expect waiter1 "ex ok"
release waiter1
expect waiter2 "excl ok"
release waiter2
expect late "ex ok"
release late elsewhere interrupted
wait_claims job 0
