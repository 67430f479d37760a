#!/usr/bin/python3
"""stall_clock.py FILE: writes a line for each time that this process was late by more than 10 ms: by how many milliseconds."""

import sys
import time

PAUSE = 0.02
file = open(sys.argv[1], "a", buffering=1, encoding="ascii")
last = time.monotonic()
while True:
    time.sleep(PAUSE)
    now = time.monotonic()
    late = (now - last - PAUSE) * 1000
    if late > 10:
        print(round(late), file=file)
    last = now
