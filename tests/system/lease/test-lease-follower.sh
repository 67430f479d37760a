#!/bin/bash
# A follower is cut off from its ensemble, silently, and goes on answering: the host that talks only to it has a healthy
# connection and sees its own claim, while the leader ends its session. Its holders are fenced before the waiters on
# the other host are granted; when the cut heals, everything works again.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_linked_ensemble
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r follower other <<<"${servers[*]/$leader/}"
start_dlockfs A --session-timeout 4s --store "zookeeper://$(zookeeper_address "$follower")/dlockfs"
start_dlockfs B --session-timeout 20s --store "zookeeper://$(zookeeper_address "$other")/dlockfs"
zookeeper_name=$leader

keep_contended
keep waiter "$dir/A/flock" flock
wait_claims flock 3
start reader "$python" -u "$tests/lib/lease.py" reads "$(zookeeper_address "$follower")" /dlockfs/flock "$dir/read"
expect reader connected

cut=$(lease now)
for link in $(links_of "$follower"); do
    cut_link "$link"
done
for kind in flock excl; do
    wait_until "$deadline" fenced "holder-$kind"
done
mode=$(zookeeper_mode "$follower" || true)
go read
expired=$(grep "has expired" "$dir/A.log" || true)
for kind in flock excl; do
    fenced_first "$cut" "holder-$kind" "rival-$kind"
done
# It was the lease that told: the follower still believed in itself and showed the claims. (The pings of a session wait behind
# its write, so the client library hangs up after two thirds of the timeout, which may be just before the end of the lease.)
grep -q "the newest proof that the session lives is [0-9]* ms old.*: giving it up, 2 locks are lost" "$dir/A.log"
expect_equal "messages of the session's end before the fence" "" "$expired"
expect_equal "the follower's mode" follower "$mode"
expect reader "children 3"

for link in $(links_of "$follower"); do
    join_link "$link"
done
wait_claims flock 2
not_granted waiter
never_revived holder-flock holder-excl
release rival-flock rival-excl
wait_until "$deadline" granted waiter
wait_until "$deadline" flock -n "$dir/A/excl" true
never_revived holder-flock holder-excl
not_fenced waiter
release waiter holder-flock holder-excl reader
wait_claims flock 0
wait_claims excl 0
