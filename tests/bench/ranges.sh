#!/bin/bash
# What many ranges cost: a process that holds more and more ranges of one file, and a range lock on a file that others
# have many claims on. Prints how many claims stand for the ranges, and the time and the server's requests for a cycle
# of lock and unlock.
#
#     tests/bench/ranges.sh [RANGES [CYCLES]]      (1000, 200)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

ranges=${1:-1000}
cycles=${2:-200}

zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
start_zookeeper
start_dlockfs A
start_dlockfs B
PYTHONPATH=$tests/bench "$python" - "$(zookeeper_address)" "$dir" "$ranges" "$cycles" <<'END'
import fcntl, os, statistics, struct, sys, time

from server import requests

address, folder, ranges, cycles = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
F_OFD_SETLKW = 38


def claims(lock):
    from kazoo.client import KazooClient

    client = KazooClient(address)
    client.start(10)
    count = len(client.get_children(f"/dlockfs/{lock}"))
    client.stop()
    client.close()
    return count


def open_file(host, name):
    return os.open(f"{folder}/{host}/{name}", os.O_RDWR | os.O_CREAT)


def ask(file, command, kind, start, length):
    fcntl.fcntl(file, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


def cycle(file, start):
    ask(file, fcntl.F_SETLKW, fcntl.F_WRLCK, start, 10)
    ask(file, fcntl.F_SETLK, fcntl.F_UNLCK, start, 10)


def measure(name, file, start):
    """Median microseconds and requests of a cycle."""
    cycle(file, start)
    before, times = requests(address), []
    for _ in range(cycles):
        begin = time.monotonic()
        cycle(file, start)
        times.append((time.monotonic() - begin) * 1e6)
    count = (requests(address) - before - 1) / cycles
    print(f"{name:52} {statistics.median(times):8.0f} us {count:7.2f} requests")


def hold_many(name, file, lock):
    before, begin = requests(address), time.monotonic()
    for number in range(ranges):
        ask(file(number), F_OFD_SETLKW, fcntl.F_WRLCK, number * 20, 10)
    count = (requests(address) - before - 1) / ranges
    print(
        f"{name}: {claims(lock)} claims, "
        f"{(time.monotonic() - begin) / ranges * 1e6:.0f} us and {count:.2f} requests for each"
    )


beyond = ranges * 20 + 1000
measure("a range of a free file", open_file("B", "free"), beyond)

one = open_file("A", "one")
hold_many(f"{ranges} ranges of one owner", lambda number: one, "one")
measure(f"a range beside {ranges} ranges of another host's owner", open_file("B", "one"), beyond)
measure("a range between them", open_file("B", "one"), 10)

files = [open_file("A", "many") for _ in range(ranges)]
hold_many(f"{ranges} ranges of as many owners", files.__getitem__, "many")
measure(f"a range beside {ranges} claims of another host", open_file("B", "many"), beyond)
measure("a range between them", open_file("B", "many"), 10)
END
