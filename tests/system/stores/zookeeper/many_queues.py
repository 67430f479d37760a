#!/usr/bin/python3
"""many_queues.py FOLDER NUMBER: so many threads that wait for a lock each, FOLDER/of a long name, and keep it.

Prints "all asked" when all of them have asked, and "NUMBER granted" when each has its lock. Runs until it is killed, and keeps
what it was granted.
"""

import fcntl
import os
import sys
import threading
import time

folder, number = sys.argv[1], int(sys.argv[2])
threading.stack_size(64 * 1024)


def take(descriptor):
    fcntl.flock(descriptor, fcntl.LOCK_EX)


threads = []
for index in range(number):
    name = os.path.join(folder, "a-long-name-" * 8 + str(index))
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
    threads.append(threading.Thread(target=take, args=(descriptor,)))
    threads[-1].start()
print("all asked", flush=True)
for thread in threads:
    thread.join()
print(number, "granted", flush=True)
while True:
    time.sleep(3600)
