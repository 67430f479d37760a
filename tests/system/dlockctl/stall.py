#!/usr/bin/python3
"""Reads a directory into memory that never comes, and so has the kernel keep the directory locked: stall.py DIRECTORY.

The memory is a page for which userfaultfd(2) answers nobody. Prints "stalls" first; it stalls until it is killed.
"""

import ctypes
import mmap
import os
import struct
import sys

SYS_USERFAULTFD, SYS_GETDENTS64 = {"x86_64": (323, 217), "aarch64": (282, 61)}[os.uname().machine]
UFFDIO_API, UFFDIO_REGISTER = 0xC018AA3F, 0xC020AA00
UFFD_API = 0xAA
UFFDIO_REGISTER_MODE_MISSING = 1

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def main():
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    faults = check(libc.syscall(SYS_USERFAULTFD, os.O_CLOEXEC))
    for request, words in (
        (UFFDIO_API, (UFFD_API, 0, 0)),
        (UFFDIO_REGISTER, (address, mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0)),
    ):
        check(libc.ioctl(faults, ctypes.c_ulong(request), struct.pack(f"{len(words)}Q", *words)))
    directory = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
    print("stalls", flush=True)
    check(libc.syscall(SYS_GETDENTS64, directory, ctypes.c_void_p(address), mmap.PAGESIZE))


main()
