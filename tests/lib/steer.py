#!/usr/bin/python3
"""Steers locks as dlockctl does: steer.py revoke|break MOUNT LOCK POSITION

POSITION is that in the queue, from 1; or the claim itself. Prints "ok" or the name of the errno.
"""

import errno
import fcntl
import os
import re
import struct
import sys
import urllib.parse

COMMANDS = {"revoke": 2, "break": 3}  # fs/dlockfs.h
BYTES = 256

command, mount, lock, position = sys.argv[1:]
try:
    with open(f"{mount}/.dlockfs/locks/{lock}", encoding="ascii") as queue:
        line = re.search(rf"^position={position} .*", queue.read(), re.MULTILINE)
        claim = re.search(r" claim=(\S+)", line[0])[1] if line else "nobody" if position.isdigit() else position
        request = struct.pack(f"{BYTES}s", urllib.parse.unquote_to_bytes(claim))
        fcntl.ioctl(queue, 1 << 30 | BYTES << 16 | 0xDF << 8 | COMMANDS[command], request)
    print("ok")
except OSError as error:
    print(errno.errorcode[error.errno])
