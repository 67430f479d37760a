#!/usr/bin/python3
"""record_fairness.py FOLDER FOLDER FOLDER: who waits for a record lock is not starved by others who hold something.

The first two folders are the file on two hosts: one process each holds a byte of it on either side of the range that both take in
turn, without a pause. A process in the third folder holds nothing and asks for the same range, ten times. Prints how long it took.
"""

import fcntl
import os
import select
import signal
import struct
import sys
import time

PATIENCE = 90  # seconds for all
HOLD = 0.005  # longer than it takes the other one to ask
FIRST, RANGE, LAST = (0, 1), (10, 1), (31, 1)


def lock(file, kind, part):
    fcntl.fcntl(file, fcntl.F_SETLKW, struct.pack("hhqqi4x", kind, os.SEEK_SET, *part, 0))


def open_file(folder):
    return os.open(f"{folder}/fair", os.O_RDWR | os.O_CREAT)


def take_turns(folder, ready):
    file = open_file(folder)
    lock(file, fcntl.F_RDLCK, FIRST)
    lock(file, fcntl.F_RDLCK, LAST)
    for turn in range(sys.maxsize):
        lock(file, fcntl.F_WRLCK, RANGE)
        if turn == 5:
            os.write(ready, b"x")
        time.sleep(HOLD)  # meanwhile the other one asks
        lock(file, fcntl.F_UNLCK, RANGE)


def be_third(folder, ready):
    file = open_file(folder)
    times = []
    for _ in range(10):
        begin = time.monotonic()
        lock(file, fcntl.F_WRLCK, RANGE)
        times.append(time.monotonic() - begin)
        lock(file, fcntl.F_UNLCK, RANGE)
    os.write(ready, f"{max(times):.3f}".encode())


def start(function, folder):
    """The child, and where it writes to."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        function(folder, writer)
        os._exit(0)
    os.close(writer)
    return child, reader


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    end = time.monotonic() + PATIENCE
    children = []

    def wait(reader, what):
        if not select.select([reader], [], [], max(end - time.monotonic(), 0))[0]:
            sys.exit(f"{what} for {PATIENCE} s")
        return os.read(reader, 64)

    try:
        for folder in sys.argv[1:3]:
            children.append(start(take_turns, folder))
        for _, reader in children[:2]:
            wait(reader, "no turns taken")
        children.append(start(be_third, sys.argv[3]))
        longest = wait(children[2][1], "the third process is starved")
        print(f"the longest of ten waits: {longest.decode()} s")
    finally:
        for child, _ in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
