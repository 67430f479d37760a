#!/usr/bin/python3
"""program_python.py VERB PROGRAM FILES WORK HOST ARGUMENT...: locks of Python's modules that make files. The verbs are those of program.sh.

mailbox     mailbox.mbox of an empty mailbox in FILES, while one in WORK that all hosts share is changed
filelock    SoftFileLock of filelock
"""

import contextlib
import mailbox
import os
import random
import sys
import time

import filelock

verb, program, files, work = sys.argv[1:5]
mailbox.fcntl = None  # mailbox locks the mailbox itself as well, which on one machine would exclude by itself


class Taken(Exception):
    """Somebody else has the lock."""


@contextlib.contextmanager
def with_filelock():
    lock = filelock.SoftFileLock(f"{files}/filelock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise Taken from None
    yield
    lock.release()


@contextlib.contextmanager
def with_mailbox():
    gate = mailbox.mbox(f"{files}/mailbox")
    try:
        gate.lock()
    except mailbox.ExternalClashError:
        raise Taken from None
    yield
    box = mailbox.mbox(f"{work}/mailbox")
    box.add("Subject: increment\n\nText\n")
    if len(box) > 3:
        box.remove(next(box.iterkeys()))
    box.close()
    gate.unlock()
    gate.close()


def attempt(action, *arguments):
    with {"filelock": with_filelock, "mailbox": with_mailbox}[program]():
        action(*arguments)


def increment(counter):
    with open(counter, encoding="ascii") as file:
        number = int(file.read())
    time.sleep(0.003)
    with open(counter, "w", encoding="ascii") as file:
        file.write(f"{number + 1}\n")


def hold(go):
    print("held", flush=True)
    while not os.path.exists(go):
        time.sleep(0.02)


def count(counter, times):
    done = 0
    while done < int(times):
        try:
            attempt(increment, counter)
            done += 1
        except Taken:
            time.sleep(random.uniform(0.01, 0.04))


if verb == "count":
    count(*sys.argv[6:])
elif verb == "hold":
    attempt(hold, sys.argv[6])
    print("released", flush=True)
else:
    try:
        attempt(lambda: None)
    except Taken:
        sys.exit(1)
