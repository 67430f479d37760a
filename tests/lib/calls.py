#!/usr/bin/python3
"""Makes system calls on a file, one after the other: calls.py FILE STEP...

Prints a line for each step: the step, then "ok", what it returned, or the name of its errno. A step that
fails does not end the program. Calls are made through the C library, so that Python neither restarts
nor hides an interrupted one.

open, open-ro, open-rw      open(O_RDWR|O_CREAT), without O_CREAT read-only, read-write
append                      open(O_WRONLY|O_CREAT|O_APPEND)
excl, excl-nb               open(O_RDWR|O_CREAT|O_EXCL), with O_NONBLOCK
ex, sh, ex-nb, sh-nb, un    flock
w:RANGE, r:RANGE, u:RANGE   fcntl: F_SETLKW for writing, for reading, to unlock
w-nb:, r-nb:, u-nb:         F_SETLK
get-w:, get-r:              F_GETLK: prints "free", or of the lock that is in the way TYPE RANGE PID
ofd-w:, ofd-get-w: ...      the same with F_OFD_SETLKW, F_OFD_SETLK, F_OFD_GETLK
lockf=N, tlock=N, test=N, ulock=N
                            lockf(F_LOCK, F_TLOCK, F_TEST, F_ULOCK) of N bytes from where seek= went
dup, close, close-first     a duplicate, which the steps after it use; close() that; close() the first one
swap                        the steps after it use the last descriptor but one
file=PATH                   which file the steps after it open
fork=STEP,STEP...           a child makes these steps, waited for; its lines begin with "child"
spawn=STEP,STEP...          the same, not waited for
thread=STEP,STEP...         another thread makes these steps, waited for; its lines begin with "thread"
read, write=TEXT, fill=N, truncate=N, size, seek=N, fstat, fsync, stat, unlink, mode=OCTAL
alarm=SECONDS               a SIGALRM after so long, and more until a call is interrupted: the first may come before the
                            call that it is for. Calls are not restarted
ticks=SECONDS               a SIGALRM each so long until a call is interrupted, and calls are restarted (SA_RESTART)
quiet                       no more signals
token                       ioctl(DLOCKFS_IOC_TOKEN)
slot                        ioctl(DLOCKFS_IOC_SLOT)
lease                       ioctl(DLOCKFS_IOC_LEASE): prints how many seconds are left, rounded up, or "endless"
catch=NAME                  from now on prints "caught NAME PID TIME" whenever the signal of that name comes, to this
                            process or to a child made later; TIME as in lease.py
poll                        what poll(2) says at once
watch, ewatch               waits with poll(2), with epoll, until the file is more than readable and writable
await=FILE                  until the file exists
hold                        until it is killed
-                           steps from standard input, one a line, until its end

A RANGE is FIRST-LAST, both bytes included, FIRST- to the end of everything, or START+LENGTH as fcntl is to be
told; "@cur" or "@end" after it counts from the position or the size, "@N" is any other l_whence.
"""

import ctypes
import errno
import math
import os
import re
import select
import signal
import struct
import sys
import threading
import time

DLOCKFS_IOC_LEASE = 0x8008DF04  # fs/dlockfs.h
NUMBERS = {"token": 0x8008DF01, "slot": 0x8008DF05}  # DLOCKFS_IOC_TOKEN, DLOCKFS_IOC_SLOT

libc = ctypes.CDLL(None, use_errno=True)

LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
# F_GETLK, F_SETLK and F_SETLKW, in this order.
RECORD_COMMANDS = {None: (5, 6, 7), "ofd-": (36, 37, 38)}
RECORD_TYPES = {"r": 0, "w": 1, "u": 2}
RECORD = re.compile(r"(ofd-)?(get-)?([rwu])(-nb)?:(-?\d+)(?:\+(-?\d+)|-(\d*))(?:@(\w+))?")
WHENCES = {None: os.SEEK_SET, "cur": os.SEEK_CUR, "end": os.SEEK_END}
LOCKFS = {"ulock": 0, "lockf": 1, "tlock": 2, "test": 3}
FLOCKS = {
    "ex": LOCK_EX,
    "sh": LOCK_SH,
    "ex-nb": LOCK_EX | LOCK_NB,
    "sh-nb": LOCK_SH | LOCK_NB,
    "un": LOCK_UN,
}
OPENS = {
    "open": os.O_RDWR | os.O_CREAT,
    "open-ro": os.O_RDONLY,
    "open-rw": os.O_RDWR,
    "append": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "excl": os.O_RDWR | os.O_CREAT | os.O_EXCL,
    "excl-nb": os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NONBLOCK,
}

# The same numbers as ENOTSUP and EDEADLOCK.
NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EDEADLK: "EDEADLK"}

path = os.fsencode(sys.argv[1])
descriptors = []


def call(function, *arguments):
    """Calls a function of the C library; raises OSError as Python does, but never restarts it."""
    result = getattr(libc, function)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def say(line):
    """In one write(2): a child may say something at the same time."""
    os.write(1, f"{line}\n".encode(errors="surrogateescape"))


def on_caught(number, _frame):
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000
    os.write(1, f"caught {signal.Signals(number).name} {os.getpid()} {now}\n".encode())


def record_lock(fd, ofd, get, kind, nb, start, length, last, whence):
    """struct flock of 64-bit Linux: type, whence, start, len, pid."""
    if length is None:
        length = int(last) - int(start) + 1 if last else 0
    whence = WHENCES[whence] if whence in WHENCES else int(whence)
    lock = struct.pack("hhqqi4x", RECORD_TYPES[kind], whence, int(start), int(length), 0)
    lock = ctypes.create_string_buffer(lock, len(lock))
    call("fcntl", fd, RECORD_COMMANDS[ofd][0 if get else 1 if nb else 2], lock)
    if not get:
        return "ok"
    number, _, start, length, pid = struct.unpack_from("hhqqi", lock)
    if number == RECORD_TYPES["u"]:
        return "free"
    return f"{'rw'[number]} {start}-{start + length - 1 if length else ''} {pid}"


def arm(seconds, restart, interval):
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, seconds, interval)


def child(steps, waited_for):
    number = os.fork()
    if number == 0:
        run(steps, "child ")
        os._exit(0)
    if waited_for:
        os.waitpid(number, 0)


POLLS = {select.POLLIN: "IN", select.POLLOUT: "OUT", select.POLLERR: "ERR", select.POLLHUP: "HUP"}


def poll(fd, poller, wanted, seconds):
    """The names of the events; EPOLL* are the same numbers."""
    poller.register(fd, wanted)
    events = dict(poller.poll(seconds)).get(fd, 0)
    return "+".join(name for bit, name in POLLS.items() if events & bit) or "nothing"


def step_result(step):
    global path
    name, _, value = step.partition("=")
    fd = descriptors[-1] if descriptors else -1
    if name in OPENS:
        descriptors.append(call("open", path, OPENS[name], 0o666))
    elif name in FLOCKS:
        call("flock", fd, FLOCKS[name])
    elif record := RECORD.fullmatch(step):
        return record_lock(fd, *record.groups())
    elif name in LOCKFS:
        call("lockf", fd, LOCKFS[name], ctypes.c_long(int(value)))
    elif name == "dup":
        descriptors.append(os.dup(fd))
    elif name == "close":
        call("close", descriptors.pop())
    elif name == "close-first":
        call("close", descriptors.pop(0))
    elif name == "swap":
        descriptors.insert(-1, descriptors.pop())
    elif name == "file":
        path = os.fsencode(value)
    elif name == "fork":
        child(value.split(","), True)
    elif name == "spawn":
        child(value.split(","), False)
    elif name == "thread":
        thread = threading.Thread(target=run, args=(value.split(","), "thread "))
        thread.start()
        thread.join()
    elif name == "read":
        return repr(os.pread(fd, 65536, 0).decode())
    elif name == "write":
        return str(os.write(fd, value.encode()))
    elif name == "fill":
        return str(os.write(fd, b"x" * int(value)))
    elif name == "truncate":
        os.ftruncate(fd, int(value))
    elif name == "seek":
        os.lseek(fd, int(value), os.SEEK_SET)
    elif name == "size":
        return str(os.fstat(fd).st_size)
    elif name == "fstat":
        os.fstat(fd)
    elif name == "mode":
        os.fchmod(fd, int(value, 8))
    elif name == "stat":
        os.stat(path)
    elif name == "fsync":
        call("fsync", fd)
    elif name in NUMBERS:
        number = ctypes.c_uint64()
        call("ioctl", fd, NUMBERS[name], ctypes.byref(number))
        return str(number.value)
    elif name == "lease":
        end_ms = ctypes.c_int64()
        call("ioctl", fd, DLOCKFS_IOC_LEASE, ctypes.byref(end_ms))
        left = end_ms.value / 1000 - time.clock_gettime(time.CLOCK_BOOTTIME)
        return "endless" if end_ms.value == 2**63 - 1 else str(math.ceil(left))
    elif name == "unlink":
        os.unlink(path)
    elif name == "poll":
        return poll(fd, select.poll(), select.POLLIN | select.POLLOUT, 0)
    elif name == "watch":
        return poll(fd, select.poll(), select.POLLPRI, 60000)
    elif name == "ewatch":
        return poll(fd, select.epoll(), select.EPOLLPRI, 60)
    elif name == "alarm":
        arm(float(value), False, max(float(value), 0.1))
    elif name == "ticks":
        arm(float(value), True, float(value))
    elif name == "catch":
        signal.signal(signal.Signals[value], on_caught)
    elif name == "quiet":
        signal.setitimer(signal.ITIMER_REAL, 0)
    elif name == "await":
        while not os.path.exists(value):
            time.sleep(0.01)
    elif name == "hold":
        while True:
            signal.pause()
    else:
        sys.exit(f"no such step: {step}\n{__doc__}")
    return "ok"


def run(steps, prefix=""):
    for step in steps:
        if step == "-":
            run(map(str.strip, sys.stdin))
            continue
        name = step.partition("=")[0]
        try:
            result = step_result(step)
        except OSError as error:
            result = NAMES[error.errno]
            if error.errno == errno.EINTR:
                signal.setitimer(signal.ITIMER_REAL, 0)
        say(f"{prefix}{name} {result}")


run(sys.argv[2:])
