# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Chaos on three hosts and three servers, or one, as in test-chaos.sh; sourced after functions.sh. For its service the caller has:
#
#     find_leader                     the name of the server that leads
#     kill_server, launch_server NAME
#     links_of NAME                   what cuts the server off from the others
#     link_between LEADER FOLLOWER    what cuts the follower off from the leader
#     server_fault_over               what else is done after each fault of the servers
#     server_faults                   an array: only these of chaos.py; none: all of them
#
# From the environment: SEED, which decides on all faults; DURATION, for how many seconds there are faults.

# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=chaos.sh
. "$tests/system/chaos/chaos.sh"

server_faults=()

# links_to HOST: the names of its links to two of the servers, so that it can go over to another one.
links_to() {
    if [ ${#servers[@]} -eq 1 ]; then
        echo "link-$1-${servers[0]}"
        return
    fi
    case $1 in
        A) echo "link-A-${servers[0]}" "link-A-${servers[1]}" ;;
        B) echo "link-B-${servers[1]}" "link-B-${servers[2]}" ;;
        C) echo "link-C-${servers[2]}" "link-C-${servers[0]}" ;;
    esac
}

# Hosts that tell each other of releases, and one that tells nobody.
declare -A peers=([A]=127.0.0.2 [B]=127.0.0.3)
peers_port=$(free_port)

launch_host() { # HOST
    local links options=()
    read -ra links < <(links_to "$1")
    store=$(proxied "${links[@]}")
    [ -z "${peers[$1]:-}" ] || options=(-o "peers=${peers[$1]}:$peers_port")
    launch_kept "$1" --session-timeout 3s --config "$dir/chaos.ini" "${options[@]}"
}

# choose_servers NUMBER: sets chosen, the others, leader, and follower, by the number. There is one fault of the servers
# at a time: so they are still the same when it ends.
choose_servers() {
    local left
    chosen=${servers[$1 % ${#servers[@]}]}
    read -ra others <<<"${servers[*]/$chosen/}"
    leader=$(find_leader) || leader=$chosen
    read -ra left <<<"${servers[*]/$leader/}"
    follower=${left[$1 % 2]:-}
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
        server-kill) kill_server "$chosen" ;;
        server-pause) pause "$chosen" ;;
        follower-cut) cut_link "$(link_between "$leader" "$follower")" ;;
        leader-kill) kill_server "$leader" ;;
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
        server-kill) launch_server "$chosen" ;;
        server-pause) resume "$chosen" ;;
        follower-cut) join_link "$(link_between "$leader" "$follower")" ;;
        leader-kill) launch_server "$leader" ;;
        leader-cut) for name in $(links_of "$leader"); do join_link "$name"; done ;;
        quorum-loss) for name in "${others[@]}"; do resume "$name"; done ;;
    esac
    case $1 in server-* | follower-* | leader-* | quorum-*) server_fault_over ;; esac
}

# run_server_chaos SERVER...: three of them, or one, have been started.
run_server_chaos() {
    local seed=${SEED:-$RANDOM} duration=45 host link
    servers=("$@")
    # A build with sanitizers is much slower, and is there to look at the daemons' memory, not for rare races.
    ! grep -q __asan_init "$dlockfs" || duration=20
    duration=${DURATION:-$duration}
    echo "seed: $seed, $duration s of faults"
    for host in A B C; do
        for link in $(links_to "$host"); do
            start_proxy "$link" "${link##*-}"
        done
        launch_host "$host"
        wait_until "$deadline" mount_settled "$host"
    done
    chaos plan "$seed" "$duration" "${server_faults[@]}" >"$dir/plan"
    run_chaos "$seed" 10 check "${server_faults[@]}"
    for host in A B C; do
        echo "$host, in its last process: $(sed -n '/^by_/p' "$dir/$host/.dlockfs/status" | paste -sd' ')"
        stop_kept "$host"
    done
}
