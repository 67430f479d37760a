#!/bin/bash
# What tests/etcd.sh starts: a member alone, which keeps its data; a cluster of three whose leader is moved, and of which one member
# is killed, paused, or cut off from its clients.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

# value KEY [MEMBER]: asked of a majority.
value() {
    etcd_ask "${2:-etcd1}" get --print-value-only "$1"
}

start_etcd alone
expect_equal "store" "etcd://$(etcd_address alone)/dlockfs" "$store"
expect_equal "leader of one" alone "$(etcd_leader)"
etcd put kept yes >/dev/null
restart_etcd alone
expect_equal "value after a kill" yes "$(value kept alone)"
stop_etcd alone
refused etcd_serves alone
start_etcd alone
expect_equal "value after a stop" yes "$(value kept alone)"
kill_etcd alone

start_etcds 3
expect_equal "store" "etcd://$(etcd_address etcd1),$(etcd_address etcd2),$(etcd_address etcd3)/dlockfs" "$store"
expect_equal "members" "etcd1 etcd2 etcd3" "${etcd_members[*]}"
expect_equal "members by etcdctl" 3 "$(etcd member list | grep -c started)"
for name in etcd2 etcd3 etcd1; do
    etcd_move_leader "$name"
    expect_equal "leader" "$name" "$(etcd_leader)"
done

# The leader dies: two go on, and it comes back to what they have written.
kill_etcd etcd1
leader=$(etcd_leader)
[ "$leader" != etcd1 ] || fail "a dead member leads"
etcd put written without >/dev/null
rejoin_etcd etcd1
expect_equal "value at the one that was away" without "$(value written etcd1)"

# One that is paused serves nobody, and is no majority; the others are.
etcd_move_leader etcd2
pause etcd3
refused etcd_serves etcd3
expect_equal "value beside a paused member" without "$(value written etcd2)"
kill_etcd etcd1
refused etcd_ask etcd2 put written alone 2>"$dir/minority.out"
resume etcd3
rejoin_etcd etcd1
wait_until "$deadline" etcd_serves etcd3

# A link to one member: cut, and joined again.
start_proxy link etcd1
expect_equal "store through the link" "etcd://$(<"$dir/link/address")/dlockfs" "$(proxied link)"
expect_equal "store through two" "etcd://$(<"$dir/link/address"),$(<"$dir/link/address")/dlockfs" "$(proxied link link)"
through() {
    ETCDCTL_ENDPOINTS=http://$(<"$dir/link/address") timeout 5 etcdctl --command-timeout=2s get --print-value-only written
}
was=$(through)
cut_link link
refused through 2>"$dir/cut.out"
join_link link
expect_equal "value through the link" "$was" "$(through)"

# A client by its environment alone, as tests start it.
start locker etcdctl lock job -- sh -c 'echo held; exec sleep infinity'
expect locker held
expect_equal "claims" 1 "$(etcd get --prefix --keys-only job/ | grep -c job/)"
release locker

# All of them die.
for name in etcd1 etcd2 etcd3; do
    kill_etcd "$name"
done
for name in etcd1 etcd2 etcd3; do
    etcd_launch "$name"
done
for name in etcd1 etcd2 etcd3; do
    wait_until "$deadline" etcd_serves "$name"
done
expect_equal "value after all died" "$was" "$(value written etcd3)"
