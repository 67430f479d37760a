#!/bin/bash
# What lock_delay costs who locks and unlocks: hosts without it and with it, in turns, on one server, then on an ensemble of three.
#
#     tests/bench/delay.sh [ROUNDS [CYCLES]]      (9, 800)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
rounds=${1:-9}
cycles=${2:-800}

# play WHERE STORE STORE: of two hosts.
play() {
    local number
    for number in 0 5; do
        store=$2 start_dlockfs "A$number" -o "lock_delay=${number}s"
        store=$3 start_dlockfs "B$number" -o "lock_delay=${number}s"
        mkdir "$dir/A$number/delay-$number" "$dir/B$number/delay-$number"
    done
    echo "$1"
    "$python" "$tests/bench/delay.py" "$rounds" "$cycles" "lock_delay=0=$dir/A0/delay-0,$dir/B0/delay-0" \
        "lock_delay=5s=$dir/A5/delay-5,$dir/B5/delay-5"
    for number in 0 5; do
        stop_dlockfs "A$number"
        stop_dlockfs "B$number"
    done
}

start_zookeeper
play "one server" "$store" "$store"
stop_zookeeper
start_ensemble 3
play "three servers" "zookeeper://$(zookeeper_address zk1)/dlockfs" "zookeeper://$(zookeeper_address zk2)/dlockfs"
