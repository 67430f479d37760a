#!/usr/bin/python3
"""many_waiters.py FILE NUMBER: so many threads that wait for one lock, each through an open file of its own.

Writes "N granted" when it was granted N times, for N = 100, 200 and so on. Runs until it is killed.
"""

import fcntl
import os
import resource
import sys
import threading

path, number = sys.argv[1], int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
threading.stack_size(64 * 1024)
granted = 0


def wait(fd):
    global granted
    fcntl.flock(fd, fcntl.LOCK_EX)
    granted += 1
    if granted % 100 == 0:
        print(granted, "granted", flush=True)
    os.close(fd)


for _ in range(number):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    threading.Thread(target=wait, args=(descriptor,)).start()
