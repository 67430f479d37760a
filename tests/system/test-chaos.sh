#!/bin/bash
# Chaos: processes on three hosts take locks of all kinds on a few names, while daemons are killed, with what their service
# manager keeps or without, stopped, and replaced by the program that they were started from (SIGUSR2), links cut and refused,
# servers of the ensemble killed, stopped and cut off from one another, leaders changed, and the processes themselves killed
# and interrupted. From what the processes wrote down: no two ever held what conflicts, tokens grew from one to the next, and
# who lost a lock was told. In the end everybody gets every lock, and nothing is left in ZooKeeper.
#
# From the environment: SEED, which decides on all faults; DURATION, for how many seconds there are faults.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lease.sh
. "$tests/system/lease.sh"
# shellcheck source=kept.sh
. "$tests/system/kept.sh"
# shellcheck source=chaos.sh
. "$tests/system/chaos.sh"

# links_to HOST: the names of its links to two of the servers, so that it can go over to another one.
links_to() {
    case $1 in
        A) echo link-A-zk1 link-A-zk2 ;;
        B) echo link-B-zk2 link-B-zk3 ;;
        C) echo link-C-zk3 link-C-zk1 ;;
    esac
}

launch_host() { # HOST
    local link addresses=""
    for link in $(links_to "$1"); do
        addresses+=${addresses:+,}$(<"$dir/$link/address")
    done
    store=zookeeper://$addresses/dlockfs
    launch_kept "$1" --session-timeout 3s --config "$dir/chaos.ini"
}

# The link of two servers.
link_between() {
    echo "link$(printf '%s\n' "${1#zk}" "${2#zk}" | sort | tr -d '\n')"
}

# choose_servers NUMBER: sets chosen, the others, leader, and follower, by the number. There is one fault of the servers
# at a time: so they are still the same when it ends.
choose_servers() {
    local all=(zk1 zk2 zk3)
    chosen=${all[$1]}
    read -ra others <<<"${all[*]/$chosen/}"
    leader=$(zookeeper_find_leader 3) || leader=$chosen
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
        server-kill) stop_zookeeper "$chosen" ;;
        server-pause) pause "$chosen" ;;
        follower-cut) cut_link "$(link_between "$leader" "$follower")" ;;
        leader-kill) stop_zookeeper "$leader" ;;
        leader-cut) for name in $(links_of "$leader"); do cut_link "$name"; done ;;
        quorum-loss) for name in "${others[@]}"; do pause "$name"; done ;;
        *) fail "no such fault: $1" ;;
    esac
}

fault_end() { # FAULT TARGET
    local name
    case $1 in
        daemon-kill) launch_host "$2" ;;
        daemon-pause | daemon-freeze) resume "$2" ;;
        link-cut) for name in $(links_to "$2"); do join_link "$name"; done ;;
        link-refuse) for name in $(links_to "$2"); do rm "$dir/$name/refuse"; done ;;
        server-kill) zookeeper_launch "$chosen" ;;
        server-pause) resume "$chosen" ;;
        follower-cut) join_link "$(link_between "$leader" "$follower")" ;;
        leader-kill) zookeeper_launch "$leader" ;;
        leader-cut) for name in $(links_of "$leader"); do join_link "$name"; done ;;
        quorum-loss) for name in "${others[@]}"; do resume "$name"; done ;;
    esac
}

seed=${SEED:-$RANDOM}
duration=45
# A build with sanitizers is much slower, and is there to look at the daemons' memory, not for rare races.
! grep -q __asan_init "$dlockfs" || duration=20
duration=${DURATION:-$duration}
echo "seed: $seed, $duration s of faults"

linked_tick=1500 # half of the session: the servers hear of sessions as seldom as they may
start_linked_ensemble
zookeeper_name=zk1
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
