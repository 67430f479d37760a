#!/bin/bash
# A host that holds, and one that waits, write nothing to etcd but the keep-alives of their leases, which are no entries of its
# log; neither does one that has nothing to do.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_etcd
start_dlockfs A --session-timeout 4s
start_dlockfs B --session-timeout 4s

received='grpc_server_msg_received_total{'
keep_alives="${received}grpc_method=\"LeaseKeepAlive\""
committed=etcd_server_proposals_committed_total

counted() {
    etcd_metrics etcd "$committed" etcd_debugging_mvcc_put_total "$keep_alives" "$received"
}

settled() {
    local before
    before=$(etcd_metric "$committed")
    sleep 0.3
    [ "$(etcd_metric "$committed")" = "$before" ]
}

kept_alive() {
    [ "$(etcd_metric "$keep_alives")" -ge "$1" ]
}

# idle WHAT: while both hosts send ten keep-alives or more.
idle() {
    local entries written kept calls now
    wait_until "$deadline" settled
    read -r entries written kept calls <<<"$(counted)"
    wait_until "$deadline" kept_alive $((kept + 10))
    read -r -a now <<<"$(counted)"
    expect_equal "$1: entries of the log" "$entries" "${now[0]}"
    expect_equal "$1: keys written" "$written" "${now[1]}"
    kept=$((now[2] - kept))
    calls=$((now[3] - calls))
    echo "$1: $calls messages, $kept of them keep-alives"
    # For each keep-alive of one of the hosts a few: proofs and questions about the watches, of both, and more of them
    # where an answer comes late.
    [ "$calls" -le $((kept * 5)) ] || fail "$1: $calls messages while $kept keep-alives were sent"
}

comes_free "$dir/A/job"
comes_free "$dir/B/job"
etcd_wait_claims job 0
idle "with nothing to do"
before=$(etcd_metric "$committed")
hold holder "$dir/A/job"
expect holder held
start waiter flock "$dir/B/job" true
etcd_wait_claims job 2
[ "$(etcd_metric "$committed")" -gt "$before" ] || fail "$committed counts no claims"
idle "with a holder and a waiter"
release holder
finish waiter
