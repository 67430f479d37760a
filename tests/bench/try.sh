#!/bin/bash
# How often a call that does not wait is refused because of another host's release that has returned, but is still on its way to
# the servers, and how long a call takes that is refused rightly: with the usual try_grace, and without. Two hosts on one server,
# then on two followers, or the leader and one, of an ensemble of three.
#
#     tests/bench/try.sh [ROUNDS [CALLS]]      (5000, 300)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

play() {
    local grace host
    for grace in auto 0ms; do
        for host in A B; do
            # shellcheck disable=SC2154
            store=${stores[$host]} start_dlockfs "$host" -o try_grace=$grace
        done
        echo "$1, try_grace = $grace"
        "$python" "$tests/lib/ping_pong.py" "$dir/A/job" "$dir/B/job" "$rounds" "$calls" flock
        stop_dlockfs A
        stop_dlockfs B
    done
}

rounds=${1:-5000}
calls=${2:-300}
declare -A stores

start_zookeeper
stores=([A]=$store [B]=$store)
play "one server"
stop_zookeeper
start_ensemble 3
stores=([A]=zookeeper://$(zookeeper_address zk1)/dlockfs [B]=zookeeper://$(zookeeper_address zk2)/dlockfs)
play "three servers"
