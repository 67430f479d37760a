#!/bin/bash
# Chaos, as test-chaos.sh, with three members of etcd instead: they are killed, paused, and cut off from one another and from the hosts,
# while every few seconds the leader is moved, the history is compacted, or the lease of a host is revoked by hand.
#
# From the environment: SEED, which decides on all faults; DURATION, for how many seconds there are faults.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=kept.sh
. "$tests/system/kept.sh"
# shellcheck source=chaos.sh
. "$tests/system/chaos.sh"

# links_to HOST: the names of its links to two of the servers, so that it can go over to another one.
links_to() {
    case $1 in
        A) echo link-A-etcd1 link-A-etcd2 ;;
        B) echo link-B-etcd2 link-B-etcd3 ;;
        C) echo link-C-etcd3 link-C-etcd1 ;;
    esac
}

launch_host() { # HOST
    local links
    read -ra links < <(links_to "$1")
    store=$(etcd_proxied "${links[@]}")
    launch_kept "$1" --session-timeout 3s --config "$dir/chaos.ini"
}

# disturb NUMBER: what people and operators do to a cluster; it may fail, as others are at it as well.
disturb() {
    local lease
    case $1 in
        0) etcd_ask "$follower" compact "$(etcd_ask "$follower" endpoint status --write-out=json | jq '.[0].Status.header.revision')" ;;
        1) etcd_ask "$leader" move-leader "$(etcd_status "$follower" | cut -d, -f2 | tr -d ' ')" ;;
        2)
            lease=$(etcd_ask "$follower" lease list | sed -n '2p')
            etcd_ask "$follower" lease revoke "$lease"
            echo "revoked $lease"
            ;;
    esac
}

# choose_servers NUMBER: sets chosen, the others, leader, and follower, by the number. There is one fault of the servers
# at a time: so they are still the same when it ends.
choose_servers() {
    local all=(etcd1 etcd2 etcd3)
    chosen=${all[$1]}
    read -ra others <<<"${all[*]/$chosen/}"
    leader=$(etcd_find_leader) || leader=$chosen
    read -ra all <<<"${all[*]/$leader/}"
    follower=${all[$1 % 2]}
}

fault_begin() { # FAULT TARGET
    local name
    case $1 in server-* | follower-* | leader-* | quorum-*) choose_servers "$2" ;; esac
    case $1 in
        daemon-kill) kill_kept "$2" ;;
        daemon-crash) send_signal "$2" KILL ;;
        daemon-pause | daemon-freeze) pause "$2" ;;
        daemon-restart) send_signal "$2" USR2 ;;
        link-cut) for name in $(links_to "$2"); do cut_link "$name"; done ;;
        link-refuse) for name in $(links_to "$2"); do touch "$dir/$name/refuse"; done ;;
        server-kill) kill_etcd "$chosen" ;;
        server-pause) pause "$chosen" ;;
        follower-cut) cut_link "$follower" ;;
        leader-kill) kill_etcd "$leader" ;;
        leader-cut) cut_link "$leader" ;;
        quorum-loss) for name in "${others[@]}"; do pause "$name"; done ;;
        *) fail "no such fault: $1" ;;
    esac
}

disturbed=0

fault_end() { # FAULT TARGET
    local name
    case $1 in
        daemon-kill) launch_host "$2" ;;
        daemon-pause | daemon-freeze) resume "$2" ;;
        link-cut) for name in $(links_to "$2"); do join_link "$name"; done ;;
        link-refuse) for name in $(links_to "$2"); do rm "$dir/$name/refuse"; done ;;
        server-kill) etcd_launch "$chosen" ;;
        server-pause) resume "$chosen" ;;
        follower-cut) join_link "$follower" ;;
        leader-kill) etcd_launch "$leader" ;;
        leader-cut) join_link "$leader" ;;
        quorum-loss) for name in "${others[@]}"; do resume "$name"; done ;;
    esac
    case $1 in
        server-* | follower-* | leader-* | quorum-*)
            disturb $((disturbed % 3)) >>"$dir/disturbed.out" 2>&1 &
            disturbed=$((disturbed + 1))
            ;;
    esac
}

seed=${SEED:-$RANDOM}
duration=45
# A build with sanitizers is much slower, and is there to look at the daemons' memory, not for rare races.
! grep -q __asan_init "$dlockfs" || duration=20
duration=${DURATION:-$duration}
echo "seed: $seed, $duration s of faults"

start_linked_etcds 3
for host in A B C; do
    for link in $(links_to "$host"); do
        start_proxy "$link" "${link##*-}"
    done
    launch_host "$host"
    wait_until "$deadline" mount_settled "$host"
done
chaos plan "$seed" "$duration" >"$dir/plan"
run_chaos "$seed" 10 check
for host in A B C; do
    stop_kept "$host"
done
