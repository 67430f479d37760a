#!/usr/bin/python3
"""holders.py FILE...: holds a lock on each by flock(2), says "held", and for each that is lost later "lost FILE"."""

import fcntl
import os
import select
import sys

poll = select.poll()
names = {}
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    names[fd] = name
    poll.register(fd, 0)
print("held", flush=True)
while names:
    for fd, _ in poll.poll():
        print("lost", names.pop(fd), flush=True)
        poll.unregister(fd)
