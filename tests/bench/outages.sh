#!/bin/bash
# What a lock survives: of so many hosts that hold one each, how many lose it when their link to the servers drops all packets for a while.
#
#     tests/bench/outages.sh [SECONDS [HOSTS]]      (4, 8) the session timeout T

if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --net -- "$0" "$@"
fi
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=../lib/link.sh
. "$tests/lib/link.sh"
numbers "$@"
timeout_ms=$((${1:-4} * 1000))
count=${2:-8}

# outages WHAT TIMES PERCENT PERCENT: so many, of parts of T, with as much link between.
outages() {
    local i
    start holders "$python" -u "$tests/lib/holders.py" "${files[@]}"
    expect holders held
    pause_ms $((timeout_ms / 2))
    for ((i = 0; i < $2; i++)); do
        kill_link
        pause_ms $((timeout_ms * $3 / 100))
        heal_link
        pause_ms $((timeout_ms * $4 / 100))
    done
    pause_ms $((timeout_ms / 2))
    echo "T = $((timeout_ms / 1000)) s, ${store%%:*}: $1: lost $(grep -c '^lost' "$dir/holders.out" || true) of $count"
    release holders
}

start_link
for start in start_far_zookeeper start_far_etcd; do
    # By default a tick of ZooKeeper is 2 s.
    zookeeper_configuration="tickTime=$((timeout_ms < 4000 ? timeout_ms / 2 : 2000))"
    "$start" 3
    files=()
    for ((i = 1; i <= count; i++)); do
        start_dlockfs "${store%%:*}-$i" --session-timeout "${timeout_ms}ms"
        files+=("$dir/${store%%:*}-$i/lock-$i")
    done
    outages "one of 0.25 T" 1 25 0
    outages "one of 0.5 T" 1 50 0
    outages "one of 0.6 T" 1 60 0
    outages "one of 0.7 T" 1 70 0
    outages "five of 0.25 T, 0.25 T of link between" 5 25 25
    outages "three of 0.5 T, 0.25 T of link between" 3 50 25
done
