#!/bin/bash
# The servers of an ensemble of three are restarted, one after the other, while locks are held and waited for on two hosts:
# nobody loses a lock or a place, and then the locks change hands in the order of the queue.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

start_ensemble 3
zookeeper_name=zk1
start_dlockfs A --session-timeout 120s
start_dlockfs B --session-timeout 120s

keep holder-A "$dir/A/job1" flock
keep holder-B "$dir/B/job2" excl
wait_until "$deadline" granted holder-A
wait_until "$deadline" granted holder-B
number=1
for waiter in B:flock A:excl B:excl A:flock; do
    number=$((number + 1))
    for lock in job1 job2; do
        keep "$lock-$number" "$dir/${waiter%:*}/$lock" "${waiter#*:}"
        wait_claims "$lock" "$number"
    done
done
before=$(zookeeper claims /dlockfs/job1; zookeeper claims /dlockfs/job2)

leader=$(zookeeper_leader 3)
servers=(zk1 zk2 zk3)
read -r one two <<<"${servers[*]/$leader/}"
# The leader in the middle, so that one is restarted under the next one.
for server in "$one" "$leader" "$two"; do
    restart_zookeeper "$server"
    zookeeper_name=$server
    expect_equal "claims after the restart of $server" "$before" \
        "$(zookeeper claims /dlockfs/job1; zookeeper claims /dlockfs/job2)"
    # A new lock, on each host, tells that its daemon is connected again.
    for host in A B; do
        timeout "$deadline" flock "$dir/$host/$server" true
        expect_status 1 timeout "$deadline" flock -n "$dir/$host/job1" true
    done
done
[ "$(cat "$dir"/[AB].log | grep -c 'connection to ZooKeeper.*lost')" -ge 2 ] || fail "no daemon lost its server"
if grep 'lock lost\|giving it up\|expired' "$dir"/[AB].log; then
    fail "a session was lost"
fi

not_fenced holder-A
not_fenced holder-B
release holder-A holder-B
for number in 2 3 4 5; do
    for lock in job1 job2; do
        wait_until "$deadline" granted "$lock-$number"
        [ "$number" -eq 5 ] || not_granted "$lock-$((number + 1))"
        not_fenced "$lock-$number"
        release "$lock-$number"
    done
done
wait_claims job1 0
wait_claims job2 0
