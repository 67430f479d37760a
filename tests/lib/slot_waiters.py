#!/usr/bin/python3
"""slot_waiters.py SLOTS WAITERS HANDOVERS FOLDER LOCK...: holders of all slots of a lock, and threads that wait for one.

They use the names of the lock, on different hosts, in turn. Prints "ready" when all wait, and once there is FOLDER/go
lets one holder after the other release, and waits until another thread has got in; prints "done", and holds on.
"""

import fcntl
import os
import queue
import signal
import sys
import threading
import time

slots, waiters, handovers = map(int, sys.argv[1:4])
folder, locks = sys.argv[4], sys.argv[5:]
held = queue.Queue()


def take(number):
    fd = os.open(locks[number % len(locks)], os.O_RDONLY | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    held.put(fd)


def waiting():
    total = 0
    for lock in locks:
        with open(f"{os.path.dirname(lock)}/.dlockfs/status", encoding="ascii") as status:
            total += sum(int(line[8:]) for line in status if line.startswith("waiters="))
    return total


for holder in range(slots):
    take(holder)
for waiter in range(waiters):
    threading.Thread(target=take, args=(waiter,), daemon=True).start()
while waiting() < waiters:
    time.sleep(0.05)
print("ready", flush=True)
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.01)
for _ in range(handovers):
    before = held.qsize()
    os.close(held.get())
    end = time.monotonic() + 60
    while held.qsize() < before:
        if time.monotonic() > end:
            sys.exit("nobody got in")
        time.sleep(0.001)
print("done", flush=True)
while True:
    signal.pause()
