#!/usr/bin/python3
"""program_lost.py see|make PATH: a lock that is a directory, at the moment when its host loses it.

see     looks all the time whether it is there, until it is not: prints "gone", when the last look began that found it, and what the
        first one said that did not
make    makes it as soon as it can: prints "made" and when
Times are milliseconds of the monotonic clock.
"""

import errno
import os
import sys
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


def see(path):
    last = now()
    os.lstat(path)
    print("seen", flush=True)
    while True:
        begin = now()
        try:
            os.lstat(path)
        except OSError as error:
            print("gone", last, errno.errorcode[error.errno], flush=True)
            return
        last = begin
        time.sleep(0.002)


def make(path):
    while True:
        try:
            os.mkdir(path)
        except FileExistsError:
            time.sleep(0.005)
        else:
            print("made", now(), flush=True)
            return


{"see": see, "make": make}[sys.argv[1]](sys.argv[2])
