#!/bin/bash
# What many waiters for one lock cost: how long until all of them stand in the queue, the daemon's memory for each, and
# how long a hand-over takes.
#
#     tests/bench/waiters.sh [NUMBER...]      (10 100 1000 10000)
#
# The memory is what only the daemon has. KEPT=1: under a service manager that keeps what it knows; with the file in which that lies.
# STORE=local: without ZooKeeper. KINDS: "flock" and "range", or one of them. FORCE_SYNC=no: ZooKeeper does not wait
# for its disk.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
if [ -n "${KEPT:-}" ]; then
    # shellcheck source=../lib/kept.sh
    . "$tests/lib/kept.sh"
fi

[ $# -gt 0 ] || set -- 10 100 1000 10000
read -ra kinds <<<"${KINDS:-flock range}"
hand_overs=200

ninja -C "$build" tests/bench/waiters >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
[ "${STORE:-}" = local ] || start_zookeeper

# The daemon's own memory, in bytes.
memory() {
    local file sum
    sum=$(awk '$1 == "Anonymous:" { print $2 * 1024 }' "/proc/$(pid A)/smaps_rollup")
    for file in "/proc/$(pid A)/fd/"*; do
        [[ $(readlink "$file") != /memfd:* ]] || sum=$((sum + $(stat -L -c '%b * %B' "$file")))
    done
    echo "$sum"
}

# Also on the server.
stands() {
    PYTHONPATH=$tests/bench "$python" -c '
import sys, server
sys.exit(server.metrics(sys.argv[1])["zk_ephemerals_count"] != sys.argv[2])' "$(zookeeper_address)" "$1"
}

queued() {
    grep -qx "waiters=$1" "$dir/A/.dlockfs/status"
}

measure() {
    local kind=$1 number=$2 before after begin registered
    if [ -n "${KEPT:-}" ]; then
        start_kept A
    else
        start_dlockfs A
    fi
    coproc "$build/tests/bench/waiters" "$dir/A/job" "$kind" "$number" "$hand_overs"
    [ "$(head -n 1 <&"${COPROC[0]}")" = held ] || fail "waiters: not held"
    before=$(memory)
    begin=$(now_ms)
    echo queue >&"${COPROC[1]}"
    wait_until 120 queued "$number"
    [ "${STORE:-}" = local ] || wait_until 120 stands $((number + 2)) # the holder's, and the host's entry
    registered=$(($(now_ms) - begin))
    after=$(memory)
    echo release >&"${COPROC[1]}"
    printf '%-6s %8d %10d %10d %10d\n' "$kind" "$number" "$registered" $(((after - before) / number)) \
        "$(cat <&"${COPROC[0]}")"
    wait "$COPROC_PID"
    if [ -n "${KEPT:-}" ]; then
        stop_kept A
    else
        stop_dlockfs A
    fi
}

printf '%-6s %8s %10s %10s %10s\n' kind waiters "queued ms" "bytes each" "median us"
for kind in "${kinds[@]}"; do
    for number; do
        measure "$kind" "$number"
    done
done
