#!/usr/bin/python3
"""What the tests of the lease need: one clock for all hosts, in milliseconds, and holders that ask all the time.

lease.py now                the time
lease.py hold FILE KIND     takes the lock with flock or excl and prints "granted TIME"; then calls fsync and write
                            every 10 ms; prints the first error as "fenced ERRNO LAST TIME", where LAST is when the
                            last call began that succeeded, and "revived TIME" if a call succeeds after that
lease.py reads HOST:PORT PATH FILE
                            connects to the server; when FILE exists, prints how many children it sees
"""

import errno
import fcntl
import os
import sys
import time


def now():
    """CLOCK_MONOTONIC: the same for all processes, and nobody sets it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


def hold(path, kind):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if kind == "excl" else 0), 0o666)
    if kind == "flock":
        fcntl.flock(fd, fcntl.LOCK_EX)
    print("granted", now(), flush=True)
    fenced = False
    last = 0
    calls = (lambda: os.fsync(fd), lambda: os.pwrite(fd, b"mine", 0))
    while True:
        for call in calls:
            begin = now()
            try:
                call()
                last = begin
                if fenced:
                    print("revived", now(), flush=True)
            except OSError as error:
                if not fenced:
                    print("fenced", errno.errorcode[error.errno], last, now(), flush=True)
                fenced = True
        time.sleep(0.01)


def reads(address, path, file):
    from kazoo.client import KazooClient

    client = KazooClient(address, timeout=30)
    client.start(timeout=90)
    print("connected", flush=True)
    while not os.path.exists(file):
        time.sleep(0.01)
    print("children", len(client.get_children(path)), flush=True)


COMMANDS = {"now": lambda: print(now()), "hold": hold, "reads": reads}
if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]](*sys.argv[2:])
