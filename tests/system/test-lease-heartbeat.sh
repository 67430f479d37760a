#!/bin/bash
# Heartbeats cost the store a transaction each: a daemon sends them while anything is held or waited for on its host, each
# eighth of the session timeout, and none otherwise.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lease.sh
. "$tests/system/lease.sh"

# How many transactions the server makes in 3 s.
transactions() {
    local before after
    before=$(zxid zk)
    sleep 3
    after=$(zxid zk)
    echo $((after - before)) # both are written as 0x…
}

# quiet: no transactions for half a second; what was under way has ended.
quiet() {
    local before
    before=$(zxid zk)
    sleep 0.5
    [ "$(zxid zk)" = "$before" ]
}

start_zookeeper
start_dlockfs A --session-timeout 4s
start_dlockfs B --session-timeout 4s

wait_until "$deadline" quiet
expect_equal "transactions of idle daemons" 0 "$(transactions)"

call holder "$dir/A/job" open ex hold
expect holder "ex ok"
sent=$(transactions)
echo "$sent transactions in 3 s with a holder"
if [ "$sent" -lt 4 ] || [ "$sent" -gt 7 ]; then
    fail "$sent transactions in 3 s with a holder, instead of one each 0.5 s"
fi

call waiter "$dir/B/job" open ex hold
wait_claims job 2
sent=$(transactions)
echo "$sent transactions in 3 s with a holder, and a waiter on the other host"
if [ "$sent" -lt 8 ] || [ "$sent" -gt 14 ]; then
    fail "$sent transactions in 3 s with a holder and a waiter, instead of two each 0.5 s"
fi

release waiter holder
wait_until "$deadline" quiet
expect_equal "transactions of daemons that are idle again" 0 "$(transactions)"
