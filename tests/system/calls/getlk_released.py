#!/usr/bin/python3
"""Record locks that another host has just released: getlk_released.py HOLDERS-FILE ASKERS-FILE ROUNDS

For each round one process locks on the first mount, unlocks, and only then tells another one, which asks on the second mount whether
somebody holds it (F_OFD_GETLK). Prints "N of ROUNDS told of a lock that was released"."""
import fcntl
import os
import struct
import sys


def flock(kind):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 10, 0)


holders, askers, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
begin, released = os.pipe(), os.pipe()
if os.fork() == 0:
    fd = os.open(holders, os.O_RDWR | os.O_CREAT, 0o666)
    for _ in range(rounds):
        os.read(begin[0], 1)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, flock(fcntl.F_WRLCK))
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, flock(fcntl.F_UNLCK))
        os.write(released[1], b"x")
    os._exit(0)
fd = os.open(askers, os.O_RDWR | os.O_CREAT, 0o666)
stale = 0
for _ in range(rounds):
    os.write(begin[1], b"x")
    os.read(released[0], 1)
    found = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_OFD_GETLK, flock(fcntl.F_WRLCK)))[0]
    stale += found != fcntl.F_UNLCK
os.wait()
print(f"{stale} of {rounds} told of a lock that was released")
