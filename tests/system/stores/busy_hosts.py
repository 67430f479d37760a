#!/usr/bin/python3
"""Two hosts whose daemons have all kinds of work, for as long as it runs: busy_hosts.py A B

A and B are mounts, with a directory "spool" of style = file. In each round a process on A waits for a lock that one on B
releases, then others look at its queue, take a record lock and make a directory, which stays, and another one, which does not.
What fails, or is not done after some seconds, is left.
"""

import fcntl
import os
import signal
import sys
import time

SECONDS = 1


def child(call):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(SECONDS)
    try:
        call()
    except OSError:
        pass
    os._exit(0)


def take(path):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def take_parts(path):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.lockf(descriptor, fcntl.LOCK_EX, 100, 0)
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 10, 10)


def look(path):
    with open(path, "rb") as file:
        file.read()


def make(path):
    os.mkdir(path)


def make_and_remove(path):
    os.mkdir(path)
    os.rmdir(path)


def main(a, b):
    while True:
        descriptor = -1
        try:
            descriptor = os.open(f"{b}/job", os.O_RDWR | os.O_CREAT)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        waiting = [child(lambda: take(f"{a}/job")), child(lambda: look(f"{a}/.dlockfs/locks/job"))]
        time.sleep(0.05)
        if descriptor >= 0:
            os.close(descriptor)
        waiting.append(child(lambda: take_parts(f"{a}/record")))
        waiting.append(child(lambda: make(f"{a}/spool/kept")))
        waiting.append(child(lambda: make_and_remove(f"{a}/spool/directory")))
        for pid in waiting:
            os.waitpid(pid, 0)


main(*sys.argv[1:])
