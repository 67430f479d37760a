#!/bin/bash
# How fast a lock that nobody else wants is taken and released through a mount, and the floor: what the same server
# takes for creating and deleting a znode, in the same run. The rounds of all kinds alternate, so that whatever else the
# machine does meets all of them. Prints the median, the 99th percentile, the ratio of the medians, and how many
# requests the server had for each cycle.
#
#     tests/bench/run.sh [CYCLES-PER-ROUND [ROUNDS]]      (200, 10)
#
# FORCE_SYNC=no: ZooKeeper does not wait for its disk, which leaves the cost of everything else.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

cycles=${1:-200}
rounds=${2:-10}

ninja -C "$build" tests/bench/floor tests/bench/lock_cycle >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
start_zookeeper
start_dlockfs A
flock "$dir/A/job" true
PYTHONPATH=$tests/bench "$python" - "$(zookeeper_address)" "$dir/A/job" "$build/tests/bench" "$cycles" "$rounds" <<'END'
import subprocess, sys

from server import requests

address, file, folder, cycles, rounds = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])


def program(*command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def measure(process, order):
    process.stdin.write(order + "\n")
    process.stdin.flush()
    times = []
    while line := process.stdout.readline().strip():
        times.append(int(line))
    if not times:
        sys.exit(f"{order}: nothing was measured")
    return times


floor = program(f"{folder}/floor", address)
mount = program(f"{folder}/lock_cycle", file)
kinds = {
    "floor: create + delete": (floor, str(cycles)),
    "flock, unlock": (mount, f"flock {cycles}"),
    "open, flock, close": (mount, f"open {cycles}"),
    "exclusive open, close": (mount, f"excl {cycles}"),
    "range lock, unlock": (mount, f"range {cycles}"),
}
for process, order in kinds.values():
    measure(process, order)  # warms up both the server's code and the paths here
times = {name: [] for name in kinds}
received = dict.fromkeys(kinds, 0)
for _ in range(rounds):
    for name, (process, order) in kinds.items():
        before = requests(address)
        times[name] += measure(process, order)
        received[name] += requests(address) - before - 1


def quantile(values, fraction):
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))]


base = quantile(times["floor: create + delete"], 0.5)
print(f"{rounds} rounds of {cycles} cycles each; microseconds")
print(f"{'':24} {'median':>8} {'p99':>8} {'x floor':>8} {'requests':>8}")
for name, values in times.items():
    median = quantile(values, 0.5)
    count = received[name] / (rounds * cycles)
    print(f"{name:24} {median:8} {quantile(values, 0.99):8} {median / base:8.2f} {count:8.2f}")
for process in floor, mount:
    process.stdin.close()
    process.wait()
END
