#!/usr/bin/python3
"""Asks for the attributes of a node that no name leads to, by its number: stat_node.py MOUNT NODE

Prints "ok", or the name of the errno. The node must be in the kernel's cache. For root only: open_by_handle_at(2).
"""

import ctypes
import errno
import os
import struct
import sys

mount, node = sys.argv[1], int(sys.argv[2])
FILEID_INO64_GEN, GENERATION = 0x81, 1
libc = ctypes.CDLL(None, use_errno=True)

number = struct.pack("III", node >> 32, node & 0xFFFFFFFF, GENERATION)  # fuse_encode_fh()
handle = struct.pack("Ii", len(number), FILEID_INO64_GEN) + number
file = libc.open_by_handle_at(os.open(mount, os.O_RDONLY), handle, os.O_PATH)
if file < 0:
    sys.exit(f"no such node: {errno.errorcode[ctypes.get_errno()]}")
print("asks", flush=True)
try:
    os.fstat(file)
    print("ok")
except OSError as error:
    print(errno.errorcode[error.errno])
