#!/bin/bash
# Chaos, as test-chaos.sh, with three members of etcd instead: they are killed, paused, and cut off from one another and from the
# hosts; after each fault of theirs the leader is moved, the history is compacted, or the lease of a host is revoked by hand.
#
# From the environment: SEED, DURATION (see server-chaos.sh).
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=server-chaos.sh
. "$tests/system/server-chaos.sh"

store_through() {
    etcd_proxied "$@"
}

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

# disturb NUMBER: what people do to a cluster; it may fail, as the servers may not have a leader yet, or another one by now.
disturb() {
    local lease member revision
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
            lease=$(etcd_ask "$follower" lease list | sed -n '2p')
            etcd_ask "$follower" lease revoke "$lease"
            ;;
    esac
}

disturbed=0

server_fault_over() {
    {
        trap - ERR
        disturb $((disturbed % 3)) || true
    } >>"$dir/disturbed.out" 2>&1 &
    disturbed=$((disturbed + 1))
}

start_linked_etcds 3
run_server_chaos etcd1 etcd2 etcd3
