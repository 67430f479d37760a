#!/bin/bash
# The store comes back empty, its data gone: the sessions are unknown to it and so is all that was held. Holders are fenced,
# waiters queue again by themselves and are granted, and hosts that only waited or were idle find their way, too. A host that
# comes new is granted nothing before the holders were told.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=setback.sh
. "$tests/system/stores/setback.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host" --session-timeout 6s
done
# A holds and waits, B only waits, C does nothing.
for kind in flock excl; do
    keep "holder-$kind" "$dir/A/$kind" "$kind"
    wait_until "$deadline" granted "holder-$kind"
    keep "waiter-B-$kind" "$dir/B/$kind" "$kind"
    wait_claims "$kind" 2
    keep "waiter-A-$kind" "$dir/A/$kind" "$kind"
    wait_claims "$kind" 3
done
keep holder-solo "$dir/A/solo" flock
wait_until "$deadline" granted holder-solo
flock "$dir/C/warm" true
# The new store will take long to get as far as the old one.
zookeeper make /elsewhere
zookeeper write /elsewhere 5000
for host in A B C; do
    flock "$dir/$host/after" true
done
highest=$(token_of C fenced)
before=$(zxid zk)

cut=$(lease now)
stop_zookeeper
rm -r "$dir/zk/data"
mkdir "$dir/zk/data"
start_zookeeper
[ $(($(zxid zk))) -lt $((before)) ] || fail "the store is not empty"

start_dlockfs D --session-timeout 6s -o new_root=no
keep rival-solo "$dir/D/solo" flock
wait_until "$deadline" grep -q "the store's root is new" "$dir/D.log"
told_first "$cut" holder-solo rival-solo

for kind in flock excl; do
    wait_until "$deadline" fenced "holder-$kind"
    grep -q '^fenced EIO ' "$dir/holder-$kind.out" || fail "not EIO: $(grep fenced "$dir/holder-$kind.out")"
    wait_claims "$kind" 2
    # In which order they queue again is up to the sessions. One has the lock, and then the other.
    first=waiter-A-$kind second=waiter-B-$kind
    wait_until "$deadline" eval "granted $first || granted $second"
    granted "$first" || { first=waiter-B-$kind second=waiter-A-$kind; }
    not_granted "$second"
    not_fenced "$first"
    release "$first"
    wait_until "$deadline" granted "$second"
    not_fenced "$second"
done
for host in A B C; do
    wait_until "$deadline" timeout 10 flock -n "$dir/$host/new" true
    expect_status 1 flock -n "$dir/$host/flock" true
done
tokens_above "$highest" fenced D B C
never_revived holder-flock holder-excl holder-solo
release holder-solo rival-solo holder-flock holder-excl waiter-A-flock waiter-A-excl waiter-B-flock waiter-B-excl
wait_claims flock 0
wait_claims excl 0
