#!/usr/bin/python3
"""Holds files open and does what it is told: files_held.py ORDERS PATH...

Prints "open" when it has all of them. ORDERS is a FIFO, of a line each: "say N" prints what fsync(2) of the Nth file says, from 0, and
its text; "write N TEXT" writes that at its start, and prints "ok" or the name of the errno.
"""

import os
import sys

from call_result import result

files = [os.open(path, os.O_RDWR) for path in sys.argv[2:]]
print("open", flush=True)
while True:
    with open(sys.argv[1], encoding="ascii") as orders:
        for line in orders:
            order, number, *text = line.split()
            file = files[int(number)]
            if order == "say":
                print(f"{result(os.fsync, file)} {os.pread(file, 100, 0).decode()}".strip(), flush=True)
            else:
                print(result(os.pwrite, file, " ".join(text).encode(), 0), flush=True)
