#!/usr/bin/python3
"""Puts the thread of a daemon's loop into an endless loop: spin.py PID. The other threads go on.

Writes a jump to itself where the thread is. Prints "spinning" and ends; the daemon is of no use any more.
"""

import ctypes
import os
import sys

PTRACE_POKETEXT = 4
PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
JUMP = {"x86_64": 0xFEEB, "aarch64": 0x14000000}[os.uname().machine]  # "jmp .", "b ."

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, address=None, data=None):
    if libc.ptrace(request, pid, address, data) < 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")


def program_counter(pid):
    """Of a thread that has stopped, and outside of the kernel of one that waits there."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return int(file.read().split()[-1], 16)


def main(pid):
    ptrace(PTRACE_SEIZE, pid)
    ptrace(PTRACE_INTERRUPT, pid)
    os.waitpid(pid, 0)
    ptrace(PTRACE_POKETEXT, pid, program_counter(pid), JUMP)
    ptrace(PTRACE_DETACH, pid)
    print("spinning", flush=True)


main(int(sys.argv[1]))
