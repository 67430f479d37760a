#!/usr/bin/python3
"""contend.py SECONDS PROCESSES FOLDER LOCK=MOUNT,...: processes that contend for each lock without a pause.

A lock is the name of a file in each of its mounts. PROCESSES processes for each lock and mount lock it, make a file in FOLDER that may not be there, hold the lock for a moment, take the file away and unlock. Every other one
opens the lock anew each time. Prints for each lock: its name, how often it was granted, how often two had it, and the longest
that anybody has waited, in ms. Fails if anybody was refused, had to wait for more than a minute, or was granted nothing in the
last third of the time.
"""

import fcntl
import os
import sys
import time

seconds, processes, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
locks = [argument.split("=") for argument in sys.argv[4:]]


def hold(marker):
    """Returns whether somebody else has the lock."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return True
    time.sleep(0.0005)
    try:
        os.unlink(marker)
    except FileNotFoundError:
        return True
    return False


def work(path, marker, anew):
    end = time.monotonic() + seconds
    grants = late = doubles = 0
    longest = 0.0
    fd = None
    while time.monotonic() < end:
        if fd is None:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        asked = time.monotonic()
        fcntl.flock(fd, fcntl.LOCK_EX)
        now = time.monotonic()
        longest = max(longest, now - asked)
        grants += 1
        late += now > end - seconds / 3
        doubles += hold(marker)
        fcntl.flock(fd, fcntl.LOCK_UN)
        if anew:
            os.close(fd)
            fd = None
    return grants, late, doubles, longest


children = {}
for lock, mounts in locks:
    for mount in mounts.split(","):
        for index in range(processes):
            read, write = os.pipe()
            if os.fork() == 0:
                marker = f"{folder}/{lock.replace('/', '-')}"
                result = work(f"{mount}/{lock}", marker, index % 2 == 1)
                os.write(write, " ".join(map(str, result)).encode())
                os._exit(0)
            os.close(write)
            children.setdefault(lock, []).append(read)

failed = []
for lock, reads in children.items():
    grants = doubles = 0
    longest = 0.0
    for read in reads:
        with os.fdopen(read) as file:
            words = file.read().split()
        if not words or int(words[1]) == 0:
            failed.append(f"a process got {lock} {words[0] if words else 'and was refused then,'} times, none late")
            continue
        grants += int(words[0])
        doubles += int(words[2])
        longest = max(longest, float(words[3]))
    if longest > 60:
        failed.append(f"somebody waited for {lock} for {longest:.1f} s")
    print(lock, grants, doubles, round(longest * 1000), flush=True)
sys.exit("; ".join(failed) if failed else 0)
