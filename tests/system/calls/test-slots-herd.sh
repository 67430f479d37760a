#!/bin/bash
# A hand-over of a slot concerns the one who is next, and no herd: where many hold the lock and many wait on three hosts, it takes
# as few requests to ZooKeeper as where few do.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# Heartbeats come so seldom that they do not disturb who counts requests.
cat >"$dir/ini" <<END
[store]
session_timeout = 10m
[locks]
try_limit = 60s
[locks "few"]
slots = 2
[locks "many"]
slots = 16
END
start_zookeeper
for host in A B C; do
    start_dlockfs "$host" --config "$dir/ini"
done

# requests LOCK SLOTS WAITERS: sets the variable number to how many requests a hand-over took, rounded up.
requests() {
    local before handovers=$(($3 / 2))
    mkdir "$dir/$1"
    start "$1" "$python" "$tests/lib/slot_waiters.py" "$2" "$3" "$handovers" "$dir/$1" "$dir"/{A,B,C}/"$1"
    expect "$1" ready
    before=$(zookeeper_received)
    touch "$dir/$1/go"
    expect "$1" "done" 120
    number=$((($(zookeeper_received) - before - 1 + handovers - 1) / handovers))
    echo "$1: $number requests for each of $handovers hand-overs"
    release "$1"
    wait_claims "$1" 0
}

requests few 2 16
[ "$number" -le 12 ] || fail "$number requests"
requests many 16 120
[ "$number" -le 12 ] || fail "$number requests"
