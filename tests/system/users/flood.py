#!/usr/bin/python3
"""Opens a file many times and asks for its lock through each: flood.py FILE N WAITERS

Prints how many calls were refused, by errno, once no more than WAITERS of them still wait, or the
deadline is over; then keeps what it has until it is killed.
"""

import collections
import errno
import fcntl
import os
import signal
import sys
import threading
import time

path, number = sys.argv[1], int(sys.argv[2])
waiting_at_most = int(sys.argv[3])
refused = []


def ask(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        refused.append(error.errno)


opened = []
for _ in range(number):
    try:
        opened.append(os.open(path, os.O_RDONLY | os.O_CREAT, 0o644))
    except OSError as error:
        refused.append(error.errno)
threads = [threading.Thread(target=ask, args=(fd,), daemon=True) for fd in opened]
for thread in threads:
    thread.start()
end = time.monotonic() + 20
while sum(thread.is_alive() for thread in threads) > waiting_at_most and time.monotonic() < end:
    time.sleep(0.01)
counts = collections.Counter(refused)
print(*(f"{errno.errorcode[number]} {counts[number]}" for number in sorted(counts)), flush=True)
while True:
    signal.pause()
