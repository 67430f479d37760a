#!/usr/bin/python3
"""Makes one system call: one_call.py [ticks] CALL ARGUMENT... [hold]; prints "ok", or the name of its errno. With "ticks" a
signal comes each 20 ms meanwhile; with "hold" the program stays afterwards until it is killed.

mkdir, rmdir, unlink PATH; link, symlink, rename OLD NEW; excl PATH (exclusive create and close);
append, overwrite PATH TEXT (one write, to what exists); truncate PATH SIZE; chmod PATH OCTAL; cut PATH (open with O_TRUNC); fsync PATH

Or more than one, with times as those of lease.py:

many FOLDER COUNT   so many processes at once make the names n0, n1, ... there, two of them each name; prints RESULT NAME for each
keep PATH           makes the file, prints "held", and stays; prints "signal NAME TIME" for SIGTERM; when poll(2) wakes
                    "lost ERRNO ERRNO POLLERR TIME": of read and fsync, and when the last call began that found the name
until PATH          prints the error of an exclusive create, and tries again until it succeeds: "made TIME"
"""

import os
import select
import signal
import sys
import time

from call_result import result


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


def write(path, text, flags):
    fd = os.open(path, os.O_WRONLY | flags)
    os.write(fd, text.encode())


def excl(path):
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))


calls = {
    "mkdir": os.mkdir,
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "link": os.link,
    "symlink": os.symlink,
    "rename": os.rename,
    "excl": excl,
    "append": lambda path, text: write(path, text, os.O_APPEND),
    "overwrite": lambda path, text: write(path, text, 0),
    "truncate": lambda path, size: os.truncate(path, int(size)),
    "chmod": lambda path, mode: os.chmod(path, int(mode, 8)),
    "cut": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
    "fsync": lambda path: os.fsync(os.open(path, os.O_RDONLY)),
}


def make_many(folder, count):
    ready, go = os.pipe()
    for number in range(int(count)):
        if os.fork() == 0:
            os.close(go)
            os.read(ready, 1)
            name = f"n{number // 2}"
            os.write(1, f"{result(excl, folder + '/' + name)} {name}\n".encode())
            os._exit(0)
    os.close(go)
    for _ in range(int(count)):
        os.wait()


def keep(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, f"signal SIGTERM {now()}\n".encode()))
    print("held", flush=True)
    last = 0
    state = []
    events = select.poll()
    events.register(fd, 0)
    while not state:
        began = now()
        if os.path.lexists(path):
            last = began
        state = events.poll(10)
    print("lost", result(os.pread, fd, 1, 0), result(os.fsync, fd), "POLLERR" if state[0][1] & select.POLLERR else state, last, flush=True)
    while True:
        signal.pause()


def try_until_made(path):
    while (found := result(excl, path)) != "ok":
        print(found, flush=True)
        time.sleep(0.02)
    print("made", now(), flush=True)


others = {"many": make_many, "keep": keep, "until": try_until_made}

arguments = sys.argv[1:]
if arguments[0] == "ticks":
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    arguments = arguments[1:]
hold = arguments[-1] == "hold"
if hold:
    arguments = arguments[:-1]
if arguments[0] in others:
    others[arguments[0]](*arguments[1:])
else:
    print(result(calls[arguments[0]], *arguments[1:]), flush=True)
while hold:
    signal.pause()
