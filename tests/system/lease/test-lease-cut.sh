#!/bin/bash
# The link of a host is cut, silently: its holders are fenced before the waiters on the other host are granted, its
# waiters queue again afterwards; and a short cut changes nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_slow_ensemble 10000
start_proxy link zk1
start_dlockfs A --session-timeout 10s --store "$(proxied link)"
start_dlockfs B --session-timeout 10s

keep_contended
for kind in flock excl; do
    keep "waiter-$kind" "$dir/A/$kind" "$kind"
    wait_claims "$kind" 3
done

# Short: the lease lasts at least 4.7 s after the cut (0.6 x 10 s, less a heartbeat of 1.25 s).
before=$(zookeeper claims /dlockfs/flock; zookeeper claims /dlockfs/excl)
cut_link link
sleep 1
join_link link
sleep 1
for kind in flock excl; do
    not_fenced "holder-$kind"
    not_granted "rival-$kind"
    not_granted "waiter-$kind"
done
expect_equal "the queues after a short cut" "$before" "$(zookeeper claims /dlockfs/flock; zookeeper claims /dlockfs/excl)"

cut=$(lease now)
cut_link link
for kind in flock excl; do
    fenced_first "$cut" "holder-$kind" "rival-$kind"
done
join_link link

for kind in flock excl; do
    wait_claims "$kind" 2 # that of the rival, and that of the waiter in its new session
    not_granted "waiter-$kind"
    never_revived "holder-$kind"
    release "rival-$kind"
    wait_until "$deadline" granted "waiter-$kind"
    never_revived "holder-$kind"
    not_fenced "waiter-$kind"
    release "waiter-$kind" "holder-$kind"
    wait_claims "$kind" 0
done
