#!/usr/bin/python3
"""record_crowd.py FILE chain|process COUNT: many processes, or threads, that wait for record locks of one file.

chain: each of COUNT open files has a range and waits for that of the next one, whose call came before; then the last one
lets go. process: COUNT threads of one process wait for a range each, which an open file has as part of all; then it lets
go. Prints "asked", lets go when its input has a line, prints "done", and ends when its input does.
"""

import fcntl
import os
import struct
import sys
import threading


def lock(fd, command, kind, start, length):
    fcntl.fcntl(fd, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


def wait(*arguments):
    try:
        lock(*arguments)
    except OSError as error:
        print(error, flush=True)


def spawn(*arguments):
    threading.Thread(target=wait, args=arguments, daemon=True).start()


def chain(opened, count):
    files = [opened() for _ in range(count)]
    for number, file in enumerate(files):
        lock(file, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 2 * number, 1)
    for number in range(count - 2, -1, -1):
        spawn(files[number], fcntl.F_OFD_SETLKW, fcntl.F_WRLCK, 2 * number + 2, 1)
    return lambda: lock(files[-1], fcntl.F_OFD_SETLK, fcntl.F_UNLCK, 0, 0)


def process(opened, count):
    whole, file = opened(), opened()
    lock(whole, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0, 0)
    for number in range(count):
        spawn(file, fcntl.F_SETLKW, fcntl.F_WRLCK, 2 * number, 1)
    return lambda: lock(whole, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, 0, 0)


def main():
    path, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    threading.stack_size(65536)
    act = {"chain": chain, "process": process}[kind](lambda: os.open(path, os.O_RDWR | os.O_CREAT, 0o666), count)
    print("asked", flush=True)
    sys.stdin.readline()
    act()
    print("done", flush=True)
    sys.stdin.read()
    os._exit(0)  # the threads may wait for ever


main()
