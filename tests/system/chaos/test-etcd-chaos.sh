#!/bin/bash
# Chaos, as test-chaos.sh, with three members of etcd instead: they are killed, paused, and cut off from one another and from the
# hosts; after each fault of theirs the leader is moved, the history is compacted, or the lease of a host is revoked by hand. From the
# revocation on what asks the servers has to fail; what does not may succeed until the host has seen it (chaos.py, Revocation).
#
# From the environment: SEED, DURATION (see server-chaos.sh).
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=server-chaos.sh
. "$tests/system/chaos/server-chaos.sh"

find_leader() {
    etcd_find_leader
}

kill_server() {
    kill_etcd "$1"
}

launch_server() {
    etcd_launch "$1"
}

links_of() {
    echo "$1"
}

link_between() {
    echo "$2"
}

# note_leases: which host has which lease, in $dir/leases; one that does not answer is left out.
note_leases() {
    local host lease
    for host in A B C; do
        lease=$(timeout 1 sed -n 's/^store=.* lease \([0-9a-f]*\),.*/\1/p' "$dir/$host/.dlockfs/status")
        [ -z "$lease" ] || echo "$lease $host" >>"$dir/leases"
    done
}

# lease_is_over LEASE: any member says so, to whom it is to be revoked.
lease_is_over() {
    local member said
    for member in "${etcd_members[@]}"; do
        said=$(etcd_ask "$member" lease revoke "$1" 2>&1) || true
        [[ "$said" != *revoked* && "$said" != *"lease not found"* ]] || return 0
    done
    return 1
}

# told_or_late LEASE HOST MILLISECONDS: the host has seen that the lease is over, or it has to be over by the host's own reckoning.
told_or_late() {
    grep -q "etcd lease $1 is over" "$dir/$2.log" || [ "$(now_ms)" -gt "$3" ]
}

# revoke LEASE HOST: chaos.py is told when, as nobody can tell the host before another one is granted its locks.
revoke() {
    tell_fault begin lease-revoke "$2"
    wait_until "$deadline" lease_is_over "$1"
    tell_fault returned lease-revoke "$2"
    wait_until "$deadline" told_or_late "$1" "$2" $(($(now_ms) + 3000))
    tell_fault end lease-revoke "$2"
}

# disturb NUMBER: what people do to a cluster; it may fail, as the servers may not have a leader yet, or another one by now.
disturb() {
    local lease host member revision
    case $1 in
        0)
            revision=$(etcd_ask "$follower" endpoint status --write-out=json | jq '.[0].Status.header.revision')
            etcd_ask "$follower" compact "$revision"
            ;;
        1)
            member=$(etcd_status "$follower" | cut -d, -f2 | tr -d ' ')
            etcd_ask "$(etcd_find_leader)" move-leader "$member"
            ;;
        2)
            for lease in $(etcd_ask "$follower" lease list | sed 1d); do
                host=$(sed -n "s/^$lease //p" "$dir/leases" | tail -n 1)
                [ -z "$host" ] || break
            done
            [ -z "$host" ] || revoke "$lease" "$host"
            ;;
    esac
}

disturbed=0
disturbances=() # their processes

server_fault_over() {
    {
        trap - ERR
        note_leases || true
        disturb $((disturbed % 3)) || true
    } >>"$dir/disturbed.out" 2>&1 &
    disturbances+=($!)
    disturbed=$((disturbed + 1))
}

faults_over() {
    wait "${disturbances[@]}" || true # a revocation that was not carried out is found by chaos.py
}

start_linked_etcds 3
run_server_chaos etcd1 etcd2 etcd3
