#!/bin/bash
# Where the daemon's time goes: the functions that take most of it, the kernel's among them, while 64 clients want one lock
# (contended), and while each of 64 has a lock of its own (many).
#
#     tests/bench/profile.sh [contended|many]...
#
# By perf; where that is missing or may not look, or with TOOL=callgrind, by valgrind, which counts the program's instructions
# instead. RUN_S=N for another time than 5 seconds each. FORCE_SYNC=yes: ZooKeeper waits for its disk.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

[ $# -gt 0 ] || set -- contended many
most=15 # functions
ninja -C "$build" dlockfs tests/bench/flock_clients >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
tool=${TOOL:-perf}
if [ "$tool" = perf ] && ! perf record -q -e cpu-clock -o "$dir/try.perf" true >"$dir/try.out" 2>&1; then
    tool=callgrind
fi
[ "$tool" = perf ] || requires command -v valgrind callgrind_annotate
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-no}")
start_zookeeper

if [ "$tool" = callgrind ]; then
    printf '%s\n' '#!/bin/sh' "exec valgrind -q --tool=callgrind --callgrind-out-file='$dir/callgrind' '$dlockfs' \"\$@\"" >"$dir/callgrind.sh"
    chmod 755 "$dir/callgrind.sh"
    dlockfs=$dir/callgrind.sh
fi

# The time on a processor that the daemon has taken, in microseconds.
cpu_us() {
    awk -v "tick=$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000000 / tick) }' "/proc/$(pid A)/stat"
}

# clients NAME: the workload; says how much was done.
clients() {
    local own=0 before locks
    [ "$1" != many ] || own=1
    before=$(cpu_us)
    echo "run clients=64 own=$own cycles=1000000 seconds_ms=$((1000 * ${RUN_S:-5}))" |
        "$build/tests/bench/flock_clients" flock "$dir/A/job" >"$dir/$1.records"
    locks=$(grep -c . "$dir/$1.records")
    echo "$1: $locks locks, for each $((($(cpu_us) - before) / locks)) us of the daemon on a processor"
}

# shares KEYS LINES: of the samples.
shares() {
    perf report -i "$dir/perf" --stdio --no-children --sort "$1" 2>"$dir/report.log" | grep -v '^#\|^$' | sed 's/[ -]*$//' |
        awk -v "most=$2" 'NR <= most'
}

for workload; do
    case $workload in
        contended | many) ;;
        *) fail "no such workload: $workload; contended or many" ;;
    esac
    start_dlockfs A
    flock "$dir/A/warm-up" true
    if [ "$tool" = perf ]; then
        start perf perf record -q -e cpu-clock -F 1997 -o "$dir/perf" -p "$(pid A)"
        clients "$workload"
        send_signal perf INT
        finish perf || true # it ends with the signal
        stop_dlockfs A
        shares dso 6
        shares dso,symbol "$most"
    else
        clients "$workload"
        stop_dlockfs A
        callgrind_annotate "$dir/callgrind" 2>"$dir/report.log" | grep -E '^ *[0-9,]+ \(' | awk -v "most=$most" 'NR <= most + 1'
    fi
done
