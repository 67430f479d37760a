#!/bin/bash
# The leader of etcd hands over to another member, as before it is stopped for maintenance. What hosts ask meanwhile by a third one
# is dropped by the leader, and that member answers 7 s later that it has heard nothing (EtcdServer.Cfg.ReqTimeout). The hosts see
# that another member leads, and ask again sooner. The one that is to lead is paused for a moment each time, so that handing over
# takes that long.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

moves=6

start_etcds 3
for number in 1 2 3; do
    start_dlockfs "$number" --session-timeout 20s --store "etcd://$(etcd_address "etcd$number")/dlockfs"
    start "calls-$number" "$python" "$tests/system/stores/etcd/longest_call.py" "$dir/$number" 8 "$dir/stop"
done
for number in 1 2 3; do
    expect "calls-$number" started
done
# hand_over LEADER MEMBER
hand_over() {
    local words
    IFS=', ' read -r -a words < <(etcd_status "$2")
    pause "$2"
    start move env "ETCDCTL_ENDPOINTS=http://$(etcd_address "$1")" etcdctl --command-timeout=10s move-leader "${words[1]}"
    sleep 0.4
    resume "$2"
    finish move >/dev/null || cat "$dir/move.out" # the leader leads on if the other one was too slow
    wait_until "$deadline" etcd_find_leader >/dev/null
}

for ((move = 0; move < moves; move++)); do
    leader=$(etcd_leader)
    hand_over "$leader" "etcd$((${leader#etcd} % 3 + 1))"
done
sleep 1
touch "$dir/stop"
for number in 1 2 3; do
    expect_status 0 finish "calls-$number" 60
    read -r times longest < <(tail -n 1 "$dir/calls-$number.out")
    echo "host $number: $times locks, the longest call took $longest ms"
    [ "$longest" -lt 5000 ] || slow+=" $number"
done
[ -z "${slow:-}" ] || fail "a call took as long as the servers' own limit, on host$slow"
! grep -h 'lost' "$dir/1.log" "$dir/2.log" "$dir/3.log" || fail "locks were lost"
