#!/bin/bash
# A server of an ensemble of three stands still, as with a disk that hangs, first a follower and then the leader: shorter than
# a session, nobody notices; longer, who is connected to it is fenced before others are granted, and who is not keeps his locks.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

start_ensemble 3
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r follower other <<<"${servers[*]/$leader/}"
zookeeper_name=$other
# A host for each server, connected to that only. While a new leader is chosen nothing is proven to anybody, so that the host
# to be spared has a longer session.
start_dlockfs F --session-timeout 10s --store "zookeeper://$(zookeeper_address "$follower")/dlockfs"
start_dlockfs L --session-timeout 10s --store "zookeeper://$(zookeeper_address "$leader")/dlockfs"
start_dlockfs O --session-timeout 120s --store "zookeeper://$(zookeeper_address "$other")/dlockfs"

queues() {
    zookeeper claims /dlockfs/theirs
    zookeeper claims /dlockfs/ours
}

# stall SERVER HOST
stall() {
    local before cut
    keep "holder-$2" "$dir/$2/theirs" flock
    keep "holder-O-$2" "$dir/O/ours" excl
    wait_until "$deadline" granted "holder-$2"
    wait_until "$deadline" granted "holder-O-$2"
    keep "rival-$2" "$dir/O/theirs" excl
    wait_claims theirs 2
    keep "waiter-$2" "$dir/$2/theirs" flock
    wait_claims theirs 3
    keep "waiter-O-$2" "$dir/$2/ours" flock
    wait_claims ours 2

    # The lease lasts at least 4.7 s after the stop (0.6 x 10 s, less a heartbeat of 1.25 s).
    before=$(queues)
    pause "$1"
    sleep 1
    resume "$1"
    sleep 1
    for name in "holder-$2" "holder-O-$2"; do
        not_fenced "$name"
    done
    for name in "rival-$2" "waiter-$2" "waiter-O-$2"; do
        not_granted "$name"
    done
    expect_equal "the queues after a short stop" "$before" "$(queues)"

    cut=$(lease now)
    pause "$1"
    fenced_first "$cut" "holder-$2" "rival-$2"
    not_granted "waiter-$2" "the rival has it"
    not_granted "waiter-O-$2" "it is the other host's"
    resume "$1"
    # Those that waited there stand in the queue again, each behind those that did not stop.
    wait_claims theirs 2
    wait_claims ours 2
    not_granted "waiter-$2" "the rival has it"
    not_granted "waiter-O-$2" "it is the other host's"
    not_fenced "holder-O-$2"
    not_fenced "rival-$2"
    release "rival-$2" "holder-O-$2"
    wait_until "$deadline" granted "waiter-$2"
    wait_until "$deadline" granted "waiter-O-$2"
    never_revived "holder-$2"
    not_fenced "waiter-$2"
    not_fenced "waiter-O-$2"
    release "waiter-$2" "waiter-O-$2" "holder-$2"
    wait_claims theirs 0
    wait_claims ours 0
}

keep spared "$dir/L/spared" flock
wait_until "$deadline" granted spared
stall "$follower" F
not_fenced spared
release spared
stall "$leader" L
replaced() {
    [ "$(zookeeper_mode "$leader")" = follower ]
}
wait_until "$deadline" replaced
if grep 'lock lost\|giving it up\|expired' "$dir/O.log"; then
    fail "the host that was connected elsewhere lost something"
fi
