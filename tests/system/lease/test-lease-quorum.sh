#!/bin/bash
# Two of three servers stand still: who holds is fenced and nobody is granted anything; when they go on, the waiters get
# their locks and nothing is left in ZooKeeper.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_slow_ensemble 10000 2
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r one two <<<"${servers[*]/$leader/}"
zookeeper_name=$leader
# A talks only to the leader, which goes on for a while.
start_dlockfs A --session-timeout 10s --store "zookeeper://$(zookeeper_address "$leader")/dlockfs"
start_dlockfs B --session-timeout 10s

keep holder-A "$dir/A/job1" flock
keep holder-B "$dir/B/job2" excl
for name in holder-A holder-B; do
    wait_until "$deadline" granted "$name"
done
keep other-A "$dir/B/job1" excl
keep other-B "$dir/A/job2" flock
keep same-A "$dir/A/job1" flock
keep same-B "$dir/B/job2" excl
wait_claims job1 3
wait_claims job2 3

pause "$one"
pause "$two"
cut=$(lease now)
keep free-A "$dir/A/free1" flock
keep free-B "$dir/B/free2" excl
for name in holder-A holder-B; do
    wait_until "$deadline" fenced "$name"
    fence=$(($(time_of "$name" fenced) - cut))
    echo "$name: stop to fence $fence ms"
    # 0.6 x 10 s after the last heartbeat, and something for a busy machine.
    [ "$fence" -lt 9900 ] || fail "$name was fenced too late"
    grep -q '^fenced EIO ' "$dir/$name.out" || fail "not EIO: $(grep fenced "$dir/$name.out")"
done
# Time for wrong grants: until the sessions would have ended.
while [ $(($(lease now) - cut)) -lt 15000 ]; do
    sleep 0.1
done
for name in {other,same}-{A,B} free-{A,B}; do
    not_granted "$name" "there is no quorum"
done
resume "$one"
resume "$two"

for name in free-A free-B; do
    wait_until "$deadline" granted "$name"
done
# In which order they queue again is up to the sessions. One has the lock, and then the other.
one_of() {
    granted "$1" || granted "$2"
}
for name in A B; do
    wait_until "$deadline" one_of "other-$name" "same-$name"
    first=other-$name second=same-$name
    granted "$first" || { first=same-$name second=other-$name; }
    not_granted "$second"
    not_fenced "$first"
    release "$first"
    wait_until "$deadline" granted "$second"
    not_fenced "$second"
    release "$second"
done
never_revived holder-A holder-B
release holder-A holder-B free-A free-B
for lock in job1 job2 free1 free2; do
    wait_claims "$lock" 0
done
