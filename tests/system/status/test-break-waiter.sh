#!/bin/bash
# dlockctl break of a claim that waits on another host: its host takes it away at once. If that host hears of it together with the
# release that it waited for, it is that host, too, which takes the claim away, and whoever was granted the lock by it is told before.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

claims() {
    zookeeper claims /dlockfs/job
}

start_zookeeper
start_dlockfs A --session-timeout 40s
start_dlockfs B --session-timeout 40s
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep waiter "$dir/B/job" flock
wait_claims job 2
first=$(claims)

# B looks, and goes on waiting.
"$dlockctl" --mount "$dir/A" break --position 2 --yes job | finds 'position 2 away (waiting'
wait_until "$deadline" grep -q 'job: .* has broken the wait of process' "$dir/B.log"
wait_claims job 2
second=$(claims)
expect_equal "claims that are left of the first ones" 1 "$(comm -12 <(sort <<<"$first") <(sort <<<"$second") | wc -l)"
not_granted waiter

# B does not look before the lock is free.
suspend B
start order "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address)" wait-text /dlockfs/job break= "$deadline"
expect order looking
start breaking "$dlockctl" --mount "$dir/A" break --position 2 --yes job
finish order
release holder
wait_claims job 1
awake B
finish breaking
if grep 'was taken away' "$dir/B.log"; then
    violation "B was told after its claim had gone"
fi
release waiter
wait_claims job 0
