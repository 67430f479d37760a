#!/bin/bash
# Heartbeats cost the store a transaction each: a daemon sends them while anything is held or waited for on its host, each
# eighth of the session timeout, and none otherwise.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

# transactions: sets sent to how many the server makes in the next seconds, and least and most to how long that was at least and
# at most, in milliseconds.
transactions() {
    local before times=()
    times+=("$(now_ms)")
    before=$(zxid zk1)
    times+=("$(now_ms)")
    sleep 6
    times+=("$(now_ms)")
    sent=$(($(zxid zk1) - before)) # both are written as 0x…
    times+=("$(now_ms)")
    least=$((times[2] - times[1]))
    most=$((times[3] - times[0]))
}

# expect_heartbeats HOSTS WHAT: each of them sends one a second; on a machine that stops them for a while, fewer.
expect_heartbeats() {
    transactions
    echo "$sent transactions in $most ms $2"
    if [ "$sent" -lt $(($1 * least / 2000)) ] || [ "$sent" -gt $(($1 * (most / 1000 + 1))) ]; then
        fail "$sent transactions in $most ms $2, instead of $1 each second"
    fi
}

# quiet: no transactions for half a second; what was under way has ended.
quiet() {
    local before
    before=$(zxid zk1)
    sleep 0.5
    [ "$(zxid zk1)" = "$before" ]
}

start_slow_ensemble 8000
start_dlockfs A --session-timeout 8s
start_dlockfs B --session-timeout 8s

for host in A B; do
    wait_until "$deadline" grep -qx session=connected "$dir/$host/.dlockfs/status"
done
wait_until "$deadline" quiet
transactions
expect_equal "transactions of idle daemons" 0 "$sent"

call holder "$dir/A/job" open ex hold
expect holder "ex ok"
expect_heartbeats 1 "with a holder"

call waiter "$dir/B/job" open ex hold
wait_claims job 2
expect_heartbeats 2 "with a holder, and a waiter on the other host"

release waiter holder
wait_claims job 0
wait_until "$deadline" quiet
transactions
expect_equal "transactions of daemons that are idle again" 0 "$sent"
