#!/bin/bash
# The servers are away for longer than two session timeouts, as in a long election: one of three is left, which hangs up on
# everybody. Sessions outlive that, as the next leader gives each a full timeout. Who waits keeps the place.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

timeout=10

start_ensemble 3
for host in A B C; do
    start_dlockfs "$host" --session-timeout ${timeout}s
done
call holder "$dir/A/job" open ex hold
expect holder "ex ok"
number=1
for host in B C; do
    call "waiter-$host" "$dir/$host/job" open ex hold
    number=$((number + 1))
    zookeeper_name=zk1 wait_claims job $number >/dev/null
done
zookeeper_name=zk1 zookeeper claims /dlockfs/job >"$dir/claims"
stop_zookeeper zk2
stop_zookeeper zk3
sleep $((5 * timeout / 2))
for server in zk2 zk3; do
    zookeeper_launch "$server"
done
for server in zk1 zk2 zk3; do
    wait_until "$deadline" zookeeper_serves "$server"
done

# The holder lost its lock, as nothing could prove that it still had it; its claim goes with the session.
expect waiter-B "ex ok"
zookeeper_name=zk1 zookeeper claims /dlockfs/job >"$dir/claims-left"
expect_equal "claims of those who waited" "$(tail -n +2 "$dir/claims")" "$(<"$dir/claims-left")"
if said waiter-C "ex ok"; then
    violation "both have the lock"
fi
release waiter-B
expect waiter-C "ex ok"
release waiter-C holder
