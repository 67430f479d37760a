#!/usr/bin/python3
"""The service manager's end of sd_notify(3): notify.py SOCKET MOUNTPOINT

Prints each variable that comes as a line, "READY=1"; numbers that are not known beforehand as N. Each time it is
told that the daemon is ready it uses the mount at once, and prints "usable" or what is wrong.
"""

import ctypes
import fcntl
import os
import socket
import sys

FUSE_SUPER_MAGIC = 0x65735546


def use(mountpoint):
    answer = (ctypes.c_long * 64)()  # struct statfs begins with the type
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(mountpoint.encode(), answer) < 0:
        return os.strerror(ctypes.get_errno())
    if answer[0] != FUSE_SUPER_MAGIC:
        return "not mounted"
    try:
        with open(mountpoint + "/ready", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return str(error)
    return "usable"


with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
    end.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o666)  # as that of systemd
    print("listening", flush=True)
    while True:
        for line in end.recv(65536).decode().splitlines():
            name, _, value = line.partition("=")
            print(name + "=N" if name == "MONOTONIC_USEC" else line, flush=True)
            if line == "READY=1":
                print(use(sys.argv[2]), flush=True)
