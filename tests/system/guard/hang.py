#!/usr/bin/python3
"""What holders see when their daemon hangs, with the time of lease.py behind each line.

hang.py hold FILE     takes the lock with flock and prints "granted"; then "signalled" at SIGUSR1, "polled" when poll(2)
                      tells of an error, and "failed ERRNO" when a call on the descriptor does
hang.py command       a command for dlockctl run: prints "ready", and "ended" at SIGTERM
"""

import errno
import fcntl
import os
import select
import signal
import sys
import threading
import time


def say(*words):
    line = " ".join(map(str, (*words, time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000)))
    os.write(1, f"{line}\n".encode())


def ask(fd):
    try:
        while True:
            os.fsync(fd)
            time.sleep(0.01)
    except OSError as error:
        say("failed", errno.errorcode[error.errno])


def rest():
    """Until a signal ends the process. Not by pause(): Python calls handlers between its own steps, so one of a signal that
    came right before pause() would wait for the next one."""
    while True:
        time.sleep(0.05)


def hold(path):
    signal.signal(signal.SIGUSR1, lambda *_: say("signalled"))
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    say("granted")
    threading.Thread(target=ask, args=(fd,)).start()
    poll = select.poll()
    poll.register(fd, select.POLLPRI)
    while not any(events & (select.POLLERR | select.POLLNVAL) for _, events in poll.poll()):
        pass
    say("polled")
    rest()


def command():
    def end(*_):
        say("ended")
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # dlockctl passes on_lost's on
    say("ready")
    rest()


COMMANDS = {"hold": hold, "command": command}
if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]](*sys.argv[2:])
