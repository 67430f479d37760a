#!/usr/bin/python3
"""Stops a daemon when it has read a request of the kernel and done nothing else yet: stop_at_request.py PID.

Prints "attached", "stopped" when it has come to that, and ends when the daemon was killed.
"""

import ctypes
import os
import signal
import struct
import sys

PTRACE_SYSCALL = 24
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
PTRACE_GET_SYSCALL_INFO = 0x420E
PTRACE_O_TRACESYSGOOD = 1
SYSCALL_STOP = signal.SIGTRAP | 0x80
ENTRY, EXIT = 1, 2
INFORMATION = "=B7xQQ"  # struct ptrace_syscall_info, up to what depends on its first byte
REQUEST_BYTES = 40  # struct fuse_in_header

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, address=None, data=None):
    if libc.ptrace(request, pid, address, data) < 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")


def information(pid):
    """(ENTRY, the first argument), (EXIT, the result) or (something else, 0)."""
    data = ctypes.create_string_buffer(128)
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, len(data), ctypes.addressof(data))
    kind = data.raw[0]
    place = struct.calcsize(INFORMATION) + (8 if kind == ENTRY else 0)
    return kind, struct.unpack_from("=q", data.raw, place)[0] if kind in (ENTRY, EXIT) else 0


def wait(pid):
    """The signal with which it has stopped; ends the program if it was killed."""
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        sys.exit(0)
    return os.WSTOPSIG(status)


def main(pid):
    connection = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/fuse"]
    ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACESYSGOOD)
    ptrace(PTRACE_INTERRUPT, pid)
    wait(pid)
    print("attached", flush=True)
    used = -1
    while True:
        ptrace(PTRACE_SYSCALL, pid)
        if wait(pid) != SYSCALL_STOP:
            continue
        kind, number = information(pid)
        if kind == ENTRY:
            used = number
        elif kind == EXIT and used in connection and number >= REQUEST_BYTES:
            break
    print("stopped", flush=True)
    while True:
        wait(pid)


main(int(sys.argv[1]))
