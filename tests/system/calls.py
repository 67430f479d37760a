#!/usr/bin/python3
"""Makes system calls on a file, one after the other: calls.py FILE STEP...

Prints a line for each step: the step, then "ok", what it returned, or the name of its errno. A step that
fails does not end the program. Calls are made through the C library, so that Python neither restarts
nor hides an interrupted one.

open, open-ro, open-rw      open(O_RDWR|O_CREAT), without O_CREAT read-only, read-write
append                      open(O_WRONLY|O_CREAT|O_APPEND)
excl, excl-nb               open(O_RDWR|O_CREAT|O_EXCL), with O_NONBLOCK
ex, sh, ex-nb, sh-nb, un    flock
setlk, ofd, getlk           fcntl: F_SETLK, F_OFD_SETLK, F_GETLK of the first byte for writing
lockf                       lockf(F_TLOCK)
dup, close, close-first     a duplicate, which the steps after it use; close() that; close() the one before
fork=STEP,STEP...           a child makes these steps, waited for; its lines begin with "child"
read, write=TEXT, fill=N, truncate=N, size, seek=N, fstat, fsync, stat, unlink, mode=OCTAL
alarm=SECONDS               one SIGALRM after so long, and calls are not restarted
ticks=SECONDS               a SIGALRM each so long, and calls are restarted (SA_RESTART)
quiet                       no more signals; prints how many came as "signals N"
poll                        what poll(2) says at once
watch, ewatch               waits with poll(2), with epoll, until the file is more than readable and writable
await=FILE                  until the file exists
hold                        until it is killed
"""

import ctypes
import errno
import os
import select
import signal
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)

LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
F_GETLK, F_SETLK, F_WRLCK, F_UNLCK, F_TLOCK = 5, 6, 1, 2, 2
F_OFD_SETLK = 37
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

NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}  # the same number as ENOTSUP

path = os.fsencode(sys.argv[1])
descriptors = []
signals = 0


def call(function, *arguments):
    """Calls a function of the C library; raises OSError as Python does, but never restarts it."""
    result = getattr(libc, function)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def on_alarm(_number, _frame):
    global signals
    signals += 1


def record_lock(command):
    """struct flock of 64-bit Linux: type, whence, start, len, pid."""
    lock = ctypes.create_string_buffer(struct.pack("hhqqi4x", F_WRLCK, os.SEEK_SET, 0, 1, 0), 32)
    call("fcntl", descriptors[-1], command, lock)
    return "unlocked" if struct.unpack_from("h", lock)[0] == F_UNLCK else "locked"


def arm(seconds, restart, interval):
    signal.signal(signal.SIGALRM, on_alarm)
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, seconds, interval)


def child(steps):
    number = os.fork()
    if number == 0:
        run(steps, "child ")
        os._exit(0)
    os.waitpid(number, 0)


POLLS = {select.POLLIN: "IN", select.POLLOUT: "OUT", select.POLLERR: "ERR", select.POLLHUP: "HUP"}


def poll(fd, poller, wanted, seconds):
    """The names of the events; EPOLL* are the same numbers."""
    poller.register(fd, wanted)
    events = dict(poller.poll(seconds)).get(fd, 0)
    return "+".join(name for bit, name in POLLS.items() if events & bit) or "nothing"


def step_result(step):
    global signals
    name, _, value = step.partition("=")
    fd = descriptors[-1] if descriptors else -1
    if name in OPENS:
        descriptors.append(call("open", path, OPENS[name], 0o666))
    elif name in FLOCKS:
        call("flock", fd, FLOCKS[name])
    elif name == "setlk":
        return record_lock(F_SETLK)
    elif name == "ofd":
        return record_lock(F_OFD_SETLK)
    elif name == "getlk":
        return record_lock(F_GETLK)
    elif name == "lockf":
        call("lockf", fd, F_TLOCK, ctypes.c_long(0))
    elif name == "dup":
        descriptors.append(os.dup(fd))
    elif name == "close":
        call("close", descriptors.pop())
    elif name == "close-first":
        call("close", descriptors.pop(0))
    elif name == "fork":
        child(value.split(","))
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
        os.fsync(fd)
    elif name == "unlink":
        os.unlink(path)
    elif name == "poll":
        return poll(fd, select.poll(), select.POLLIN | select.POLLOUT, 0)
    elif name == "watch":
        return poll(fd, select.poll(), select.POLLPRI, 60000)
    elif name == "ewatch":
        return poll(fd, select.epoll(), select.EPOLLPRI, 60)
    elif name == "alarm":
        arm(float(value), False, 0)
    elif name == "ticks":
        arm(float(value), True, float(value))
    elif name == "quiet":
        signal.setitimer(signal.ITIMER_REAL, 0)
        return f"signals {signals}"
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
        name = step.partition("=")[0]
        try:
            result = step_result(step)
        except OSError as error:
            result = NAMES[error.errno]
        print(prefix + name, result, flush=True)


run(sys.argv[2:])
