#!/usr/bin/python3
"""counter.py flock|open|lockf|look COUNTER PROCESSES TOTAL LOCK...: processes that increment a number in a plain file.

Each increment reads the file, writes it anew, and is made under the lock, by flock, exclusive open or lockf.
To look is to read it twice under a shared flock; it must be the same.
The processes take turns with the lock's names on different hosts. Ends with an error if any of them does.
"""

import fcntl
import os
import sys
import time

kind, counter = sys.argv[1], sys.argv[2]
processes, total = int(sys.argv[3]), int(sys.argv[4])
locks = sys.argv[5:]


def take(lock):
    """Returns a descriptor whose close releases the lock."""
    if kind == "open":
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    if kind == "lockf":
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.lockf(fd, fcntl.LOCK_EX, 1, 10)
        return fd
    fd = os.open(lock, os.O_RDONLY | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_SH if kind == "look" else fcntl.LOCK_EX)
    return fd


def increment():
    with open(counter, "r+", encoding="ascii") as file:
        number = int(file.read())
        file.seek(0)
        file.truncate()
        file.write(f"{number + 1}\n")


def look():
    with open(counter, encoding="ascii") as file:
        number = int(file.read())
        time.sleep(0.001)
        file.seek(0)
        if int(file.read()) != number:
            sys.exit("violation: changed beside a reader")


def work(lock, times):
    for _ in range(times):
        fd = take(lock)
        look() if kind == "look" else increment()
        os.close(fd)


children = []
for index in range(processes):
    child = os.fork()
    if child == 0:
        times = total // processes + (index < total % processes)
        work(locks[index % len(locks)], times)
        os._exit(0)
    children.append(child)

failures = 0
for child in children:
    failures += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
sys.exit(f"{failures} processes failed" if failures else 0)
