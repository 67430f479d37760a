#!/usr/bin/python3
"""many_pieces.py FILE: record locks on every other byte of a file, until one is refused.

Prints how many there are, and the error of the one behind them; then what a question for the fencing token is answered. Keeps
them until it is killed.
"""

import errno
import fcntl
import os
import sys
import time

descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
count = 0
try:
    while count < 100000:
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 10**15 + 2 * count)
        count += 1
except OSError as error:
    print(count, errno.errorcode[error.errno], flush=True)
try:
    fcntl.ioctl(descriptor, 0x8008DF01, bytes(8))
    print("token", flush=True)
except OSError as error:
    print("no token", errno.errorcode[error.errno], flush=True)
while True:
    time.sleep(3600)
