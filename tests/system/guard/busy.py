#!/usr/bin/python3
"""What the holder of many locks sees of their loss: busy.py FOLDER NUMBER.

Takes so many locks of the folder, and prints "held". Then "caught" whenever SIGUSR1 comes; and once poll(2) has told of the loss
of each, "told" with what fsync(2) says of the first and the last one, before the process waits to be killed.
"""

import errno
import fcntl
import os
import resource
import select
import signal
import sys
import time


def result(file):
    try:
        os.fsync(file)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"


folder, number = sys.argv[1], int(sys.argv[2])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"caught\n"))
files = []
poll = select.epoll()
for each in range(number):
    file = os.open(f"{folder}/many{each}", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    files.append(file)
    poll.register(file, select.EPOLLONESHOT)
os.write(1, b"held\n")
left = number
while left > 0:
    left -= len(poll.poll())
os.write(1, f"told {result(files[0])} {result(files[-1])}\n".encode())
while True:
    time.sleep(1)
