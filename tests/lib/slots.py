#!/usr/bin/python3
"""slots.py SLOTS FOLDER TURNS LOCK...: processes that take a lock of so many slots, one process for each LOCK.

Each takes it so many times, by flock and by exclusive open in turn, and marks the number of its slot for as long by a
lock on a file of that name in FOLDER, which is no file system of dlockfs. Who finds the number marked, or out of range,
or a token there that is not smaller than its own, prints "violation: ...". Ends with an error if any of them does.
"""

import ctypes
import fcntl
import os
import random
import sys
import time

DLOCKFS_IOC_TOKEN, DLOCKFS_IOC_SLOT = 0x8008DF01, 0x8008DF05  # fs/dlockfs.h

slots, folder, turns = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def ask(fd, command):
    number = bytearray(8)
    fcntl.ioctl(fd, command, number)
    return ctypes.c_uint64.from_buffer(number).value


def violation(text):
    sys.exit(f"violation: {text}")


def take(lock, turn):
    if turn % 2:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    fd = os.open(lock, os.O_RDONLY | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def take_turn(lock, turn, marks):
    fd = take(lock, turn)
    slot = ask(fd, DLOCKFS_IOC_SLOT)
    if slot >= slots:
        violation(f"slot {slot} of {slots}")
    try:
        fcntl.flock(marks[slot], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        violation(f"slot {slot} is another holder's, too")
    if turn % 3 == 0:
        token = ask(fd, DLOCKFS_IOC_TOKEN)
        former = int(os.pread(marks[slot], 32, 0) or b"0")
        if token <= former:
            violation(f"slot {slot} has token {token} after {former}")
        os.pwrite(marks[slot], b"%020d" % token, 0)
    time.sleep(random.random() / 200)
    fcntl.flock(marks[slot], fcntl.LOCK_UN)
    os.close(fd)


def work(lock):
    # Before the lock's: what a process has open when it is killed is closed in the order of the numbers.
    marks = [os.open(f"{folder}/{slot}", os.O_RDWR | os.O_CREAT, 0o666) for slot in range(slots)]
    for turn in range(turns):
        take_turn(lock, turn, marks)


children = []
for name in sys.argv[4:]:
    child = os.fork()
    if child == 0:
        work(name)
        os._exit(0)
    children.append(child)
failures = 0
for child in children:
    failures += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
sys.exit(f"{failures} processes failed" if failures else 0)
