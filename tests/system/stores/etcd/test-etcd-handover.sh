#!/bin/bash
# The leader of etcd hands over to a member that does not answer, and drops all requests meanwhile: who waits for a lock goes on
# waiting, who holds one keeps it, and a host that connects goes on as soon as there is a leader again.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

etcd_options=(--election-timeout 5000) # it gives the hand-over up after so long
start_etcds 3
etcd_move_leader etcd1
store=etcd://$(etcd_address etcd1)/dlockfs
start_dlockfs A --session-timeout 20s
call holder "$dir/A/held" open ex await="$dir/over" fsync hold
expect holder "ex ok"
comes_free "$dir/A/busy"
IFS=', ' read -r -a words < <(etcd_status etcd2)

hand_over() {
    start move env ETCDCTL_ENDPOINTS="http://$(etcd_address etcd1)" timeout 20 etcdctl move-leader "${words[1]}"
}

# Asks for it again if it was given up before anybody looked.
drops() {
    alive move || hand_over
    ! etcd_ask etcd1 put dropped yes >"$dir/put" 2>&1 && finds 'raft proposal dropped' <"$dir/put"
}

pause etcd2
# shellcheck disable=SC2016
start busy bash -c 'while flock "$0" true; do :; done; echo refused' "$dir/A/busy"
wait_until "$deadline" drops
launch_dlockfs B --session-timeout 20s
wait_until "$deadline" etcd_ask etcd1 put dropped no
comes_free "$dir/B/busy"
comes_free "$dir/A/busy"
go over
expect holder "fsync ok"
alive busy || fail "flock: $(<"$dir/busy.out")"
release busy holder
finish move || true
resume etcd2
if grep 'dropped\|lost\|trying again' "$dir/"[AB].log; then
    fail "a request that was dropped counts as refused"
fi
