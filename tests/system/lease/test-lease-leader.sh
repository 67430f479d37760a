#!/bin/bash
# The leader of an ensemble is cut off from both followers, silently, and goes on answering for a while: the holders of the
# host that talks only to it are fenced before the waiters on a host of the new leader's are granted; when the cut
# heals, everything works again.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_linked_ensemble
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r follower other <<<"${servers[*]/$leader/}"
start_dlockfs A --session-timeout 4s --store "zookeeper://$(zookeeper_address "$leader")/dlockfs"
start_dlockfs B --session-timeout 20s \
    --store "zookeeper://$(zookeeper_address "$follower"),$(zookeeper_address "$other")/dlockfs"
zookeeper_name=$follower

keep_contended

cut=$(lease now)
for link in $(links_of "$leader"); do
    cut_link "$link"
done
for kind in flock excl; do
    wait_until "$deadline" fenced "holder-$kind"
done
mode=$(zookeeper_mode "$leader" || true)
expired=$(grep "has expired" "$dir/A.log" || true)
for kind in flock excl; do
    fenced_first "$cut" "holder-$kind" "rival-$kind"
done
# It was the lease that told: the leader still answered and believed in itself. (The pings of a session wait behind its write,
# so the client library hangs up after two thirds of the timeout, which may be just before the end of the lease.)
grep -q "the newest proof that the session lives is [0-9]* ms old.*: giving it up, 2 locks are lost" "$dir/A.log"
expect_equal "messages of the session's end before the fence" "" "$expired"
expect_equal "the leader's mode" leader "$mode"

for link in $(links_of "$leader"); do
    join_link "$link"
done
never_revived holder-flock holder-excl
keep waiter "$dir/A/flock" flock
wait_claims flock 2
not_granted waiter
release rival-flock rival-excl
wait_until "$deadline" granted waiter
wait_until "$deadline" flock -n "$dir/A/excl" true
never_revived holder-flock holder-excl
release waiter holder-flock holder-excl
wait_claims flock 0
wait_claims excl 0
