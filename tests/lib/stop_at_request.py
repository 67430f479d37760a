#!/usr/bin/python3
"""Stops a daemon when it has read a request of the kernel and done nothing else yet: stop_at_request.py PID.

With "answer" behind that: when it is about to answer the next request for a lock, and all else is done. With "notice": when
it, or its writer, is about to tell the kernel something unasked. With "signal": when it is about to send a signal to a process, or
to have its warden do that.
Prints "attached", "stopped" when it has come to that, and ends when the daemon was killed. The daemon goes on when it is killed itself.
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
REQUEST = "=IIQ24x"  # struct fuse_in_header: length, operation, number
ANSWER = "=IiQ"  # struct fuse_out_header: length, error, number;
NOTICE = 0  # or this one
LOCKS = 32, 33  # FUSE_SETLK, FUSE_SETLKW
PIDFD_SEND_SIGNAL = 424
WRITE, SENDMSG = {"x86_64": (1, 46), "aarch64": (64, 211)}[os.uname().machine]
MESSAGE = "=16xQQ"  # struct msghdr: where its parts are, and how many
PART = "=QQ"  # struct iovec
ORDER = "=QqIiIiQQ"  # struct warden_request: number, limit, kind, process, user, signal, file
WARDEN_SIGNAL = 2

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, address=None, data=None):
    if libc.ptrace(request, pid, address, data) < 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")


def information(pid):
    """(ENTRY, [the call's number, its arguments]), (EXIT, [the result]) or (something else, [])."""
    data = ctypes.create_string_buffer(128)
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, len(data), ctypes.addressof(data))
    kind = data.raw[0]
    count = {ENTRY: 7, EXIT: 1}.get(kind, 0)
    return kind, struct.unpack_from(f"={count}q", data.raw, struct.calcsize(INFORMATION))


def peek(pid, address, form):
    """What is in the memory of the process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return struct.unpack(form, memory.read(struct.calcsize(form)))


def orders_signal(pid, address):
    """Whether the message is a request to the warden to send a signal."""
    start, length = peek(pid, peek(pid, address, MESSAGE)[0], PART)
    if length != struct.calcsize(ORDER):
        return False
    order = peek(pid, start, ORDER)
    return order[2] == WARDEN_SIGNAL and order[5] != 0


def wait(pid):
    """The signal with which it has stopped; ends the program if it was killed."""
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        sys.exit(0)
    return os.WSTOPSIG(status)


def main(pid, where):
    connection = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/fuse"]
    ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACESYSGOOD)
    ptrace(PTRACE_INTERRUPT, pid)
    wait(pid)
    print("attached", flush=True)
    call, used, address = -1, -1, 0
    wanted = {NOTICE} if where == "notice" else set()  # numbers of requests
    while True:
        ptrace(PTRACE_SYSCALL, pid)
        if wait(pid) != SYSCALL_STOP:
            continue
        kind, values = information(pid)
        if kind == ENTRY:
            call, used, address = values[:3]
            if used in connection and call == WRITE and peek(pid, address, ANSWER)[2] in wanted:
                break
            if where == "signal" and call == PIDFD_SEND_SIGNAL and address != 0:  # the signal's number
                break
            if where == "signal" and call == SENDMSG and orders_signal(pid, address):
                break
        elif kind == EXIT and used in connection and call != WRITE and values[0] >= struct.calcsize(REQUEST):
            if where == "request":
                break
            _, operation, number = peek(pid, address, REQUEST)
            if where == "answer" and operation in LOCKS:
                wanted.add(number)
    print("stopped", flush=True)
    while True:
        wait(pid)


main(int(sys.argv[1]), *(sys.argv[2:] or ["request"]))
