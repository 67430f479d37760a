#!/usr/bin/python3
"""many_locks.py hold|wait FOLDER FIRST END: takes the locks of these numbers, but for the end, each through an open file of its own.

hold: one after the other; "held" once it has all. Runs until it is killed.
wait: in a thread each, and releases it once it has it; "N granted" for each multiple of 100. Ends with the last one.
"""

import fcntl
import os
import resource
import sys
import threading
import time

kind, folder, first, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
threading.stack_size(64 * 1024)
counting = threading.Lock()
granted = 0


def take(number):
    fd = os.open(f"{folder}/reports-of-the-day-{number:05}", os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def take_and_release(number):
    global granted
    os.close(take(number))
    with counting:
        granted += 1
        if granted % 100 == 0:
            print(granted, "granted", flush=True)


if kind == "hold":
    held = [take(number) for number in range(first, end)]
    print("held", flush=True)
    time.sleep(1e6)
for number in range(first, end):
    threading.Thread(target=take_and_release, args=(number,)).start()
