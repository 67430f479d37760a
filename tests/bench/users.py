"""For users.sh: users.py attack USER-ID MOUNT KIND SECONDS, calls of one ordinary user that cost the servers or the log much, as many
as it can make; prints how many. KIND is texts (rewriting own files of 4 KB in a directory of style = file), ranges (a record lock
more, beside 500), names (a new lock each time), revoke (its own lock) or refused (calls that do not wait).
users.py other USER-ID MOUNT SECONDS: another user takes and releases a lock of its own; prints the median, the 99th percentile
and the maximum of the milliseconds that flock(2) took, and how many there were."""
import fcntl
import os
import re
import signal
import struct
import sys
import threading
import time

REVOKE = 0x4100DF02
OFD_SETLK = 37
THREADS = 16

what, user, mount = sys.argv[1], int(sys.argv[2]), sys.argv[3]
kind = sys.argv[4] if what == "attack" else None
os.setgroups([])
os.setgid(user)
os.setuid(user)
end = time.monotonic() + float(sys.argv[-1])
counts = [0] * THREADS


def make(name):
    return os.open(f"{mount}/{name}", os.O_CREAT | os.O_RDWR, 0o666)


def repeat(index, call):
    number = 0
    while time.monotonic() < end:
        try:
            call(number)
            counts[index] += 1
        except OSError:
            pass
        number += 1


def texts(index):
    file = make(f"file/text-{index}")
    return lambda number: os.pwrite(file, b"%04d" % (number % 10000) * 1000, 0)


def names(index):
    def call(number):
        file = make(f"new-{index}-{number}")
        fcntl.flock(file, fcntl.LOCK_EX)
        os.close(file)
    return call


def ranges(_):
    file = make("ranges")
    first = 9 * 10 ** 18

    def change(kind, start):
        fcntl.fcntl(file, OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, 1, 0))

    for number in range(500):
        change(fcntl.F_WRLCK, first + 2 * number)

    def call(_):
        change(fcntl.F_WRLCK, first + 10000)
        change(fcntl.F_UNLCK, first + 10000)
    return call


def revoke(_):
    fcntl.flock(make("revoked"), fcntl.LOCK_EX)
    queue = f"{mount}/.dlockfs/locks/revoked"
    with open(queue) as text:
        claim = re.search(r"claim=(\S+)", text.read()).group(1)
    steered = os.open(queue, os.O_RDONLY)
    return lambda _: fcntl.ioctl(steered, REVOKE, claim.encode().ljust(256, b"\0"))


def refused(index):
    file = make("refused")
    if index == 0:
        fcntl.flock(file, fcntl.LOCK_EX)
        file = make("refused")

    def call(_):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
    return call


def attack():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    kinds = {"texts": (texts, THREADS), "names": (names, THREADS), "ranges": (ranges, 1), "revoke": (revoke, 1), "refused": (refused, 4)}
    prepare, number = kinds[kind]
    calls = [prepare(index) for index in range(number)]
    threads = [threading.Thread(target=repeat, args=each, daemon=True) for each in enumerate(calls)]
    print("ready", flush=True)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(counts), flush=True)
    os._exit(0)


def other():
    file, times = make("another"), []
    while time.monotonic() < end:
        begin = time.monotonic()
        fcntl.flock(file, fcntl.LOCK_EX)
        times.append((time.monotonic() - begin) * 1000)
        fcntl.flock(file, fcntl.LOCK_UN)
    times.sort()
    print(*(f"{times[min(int(len(times) * part), len(times) - 1)]:.1f}" for part in (0.5, 0.99, 1)), len(times))


{"attack": attack, "other": other}[what]()
