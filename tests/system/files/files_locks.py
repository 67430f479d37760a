#!/usr/bin/python3
"""Locks of files that are renamed, linked and removed, in directories of style = file.

files_locks.py check FOLDER_A FOLDER_B: of one host and another one, what has to hold, one case after the other; prints a line "wrong ..." for
each that does not, and "done COUNT" at the end.

files_locks.py hold FOLDER: makes old there, locks it, renames it to new, prints "held", and stays until it is killed.

files_locks.py random STATE SEED PROCESSES TURNS FOLDER...: so many processes for each folder lock the same few names in that many turns,
while they rename, link, remove and make them anew. STATE is a local folder: whoever is granted a lock takes a local one of the same mode,
by the number of the file, or, of names that are removed and made again alone, by the name. Prints a line

two NAME ...      for a lock that two have at a time
odd CALL ERROR    for an error that no fault explains
done COUNTS       at the end: how often each call had each result
"""

import collections
import errno
import fcntl
import os
import random
import signal
import struct
import sys

KINDS = ["flock", "fcntl", "ofd"]
F_OFD_SETLK, F_OFD_SETLKW = 37, 38
LIMIT_S = 60  # of a call that waits for what is released


def say(*words):
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def range_of(kind):
    return struct.pack("hhqqi", kind, 0, 0, 0, 0)


def lock(fd, kind, shared=False, waits=False):
    if kind == "flock":
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    else:
        command = {
            ("fcntl", False): fcntl.F_SETLK,
            ("fcntl", True): fcntl.F_SETLKW,
            ("ofd", False): F_OFD_SETLK,
            ("ofd", True): F_OFD_SETLKW,
        }[kind, waits]
        fcntl.fcntl(fd, command, range_of(fcntl.F_RDLCK if shared else fcntl.F_WRLCK))


def make(path):
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


# Cases


class Checks:
    def __init__(self, a, b):
        self.a, self.b = a, b
        self.count = 0
        self.case = ""

    def expect(self, what, expected, found):
        self.count += 1
        if found != expected:
            say("wrong", self.case + ":", what, "is", found, "and not", expected)

    def tried(self, path, kind="flock", flags=os.O_RDWR):
        """Whether another process gets the lock, by a call that does not wait."""
        child = os.fork()
        if child == 0:
            try:
                lock(os.open(path, flags, 0o644), kind)
                os._exit(0)
            except OSError as error:
                os._exit(1 if error.errno in (errno.EAGAIN, errno.EACCES) else 2)
        return ["granted", "refused", "error"][os.WEXITSTATUS(os.waitpid(child, 0)[1])]

    def refused(self, *names):
        """By each kind of lock, on both hosts."""
        for host in (self.a, self.b):
            for name in names:
                for kind in KINDS:
                    self.expect(f"{kind} of {name} on {os.path.dirname(host)}", "refused", self.tried(host + name, kind))

    def granted(self, *names):
        for host in (self.a, self.b):
            for name in names:
                self.expect(f"flock of {name} on {os.path.dirname(host)}", "granted", self.tried(host + name))

    def tested(self, path):
        """What F_GETLK says to another process."""
        child = os.fork()
        if child == 0:
            fd = os.open(path, os.O_RDWR)
            answer = fcntl.fcntl(fd, fcntl.F_GETLK, range_of(fcntl.F_WRLCK))
            os._exit(struct.unpack("hhqqi", answer)[0] == fcntl.F_UNLCK)
        return ["held", "free"][os.WEXITSTATUS(os.waitpid(child, 0)[1])]

    def wait_for(self, path, kind, held):
        """A process that has the file open, without the descriptor of the holder; says so by a byte, waits for the lock, says the next
        byte, and holds the lock until it is told to end."""
        ready, say_ready = os.pipe()
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(tell)
            os.close(held)
            fd = os.open(path, os.O_RDWR)
            os.write(say_ready, b"o")
            signal.alarm(LIMIT_S)
            lock(fd, kind, waits=True)
            os.write(say_ready, b"l")
            os.read(told, 1)
            os._exit(0)
        os.close(told)
        os.close(say_ready)
        self.expect("the waiter", b"o", os.read(ready, 1))
        os.set_blocking(ready, False)
        return child, ready, tell

    def waits(self, waiter):
        try:
            found = os.read(waiter[1], 1)
        except BlockingIOError:
            return
        self.expect("the waiter", "waiting", found)

    def is_granted(self, waiter):
        os.set_blocking(waiter[1], True)
        self.expect("the waiter", b"l", os.read(waiter[1], 1))

    def ends(self, waiter):
        os.close(waiter[1])
        os.close(waiter[2])
        os.waitpid(waiter[0], 0)

    def begin(self, case):
        self.case = case
        for host in (self.a, self.b):
            for name in os.listdir(host):
                if not os.path.isdir(host + name):
                    os.unlink(host + name)

    def check_rename(self, kind, mover):
        self.begin(f"{kind} and rename on {os.path.dirname(mover)}")
        fd = make(self.a + "old")
        lock(fd, kind)
        waiter = self.wait_for(self.b + "old", kind, fd)
        os.rename(mover + "old", mover + "new")
        self.refused("new")
        for host in (self.a, self.b):
            self.expect("F_GETLK", "held", self.tested(host + "new"))
        self.expect("fsync", None, os.fsync(fd) if mover == self.a else None)
        self.waits(waiter)
        os.close(fd)
        self.is_granted(waiter)
        self.refused("new")
        self.ends(waiter)
        self.granted("new")

    def check_links(self, kind):
        self.begin(f"{kind} and links")
        fd = make(self.a + "one")
        os.link(self.a + "one", self.a + "two")
        lock(fd, kind)
        self.refused("one", "two")
        os.link(self.a + "two", self.a + "dir/three")
        os.unlink(self.a + "one")
        os.rename(self.a + "two", self.a + "four")
        self.refused("four", "dir/three")
        os.close(fd)
        self.granted("four", "dir/three")
        fd = os.open(self.b + "four", os.O_RDWR)
        lock(fd, kind)
        self.refused("four", "dir/three")
        os.close(fd)
        os.unlink(self.a + "dir/three")

    def check_onto(self):
        self.begin("rename onto another file")
        former = make(self.a + "one")
        other = make(self.a + "two")
        lock(former, "flock")
        os.rename(self.a + "two", self.a + "one")
        self.granted("one")
        lock(other, "flock")
        self.refused("one")
        os.close(former)
        self.refused("one")
        os.rename(self.b + "one", self.b + "dir/one")
        os.rename(self.a + "dir/one", self.a + "one")
        self.refused("one")
        os.close(other)
        self.granted("one")

    def check_anew(self):
        """What is made anew by a name shares the lock of those that were made by it, wherever these are."""
        for way in ("renamed", "removed"):
            self.begin(f"made anew after it was {way}")
            fd = make(self.a + "one")
            lock(fd, "flock")
            if way == "renamed":
                os.rename(self.a + "one", self.a + "two")
            else:
                os.unlink(self.b + "one")
            self.expect("the new file", "refused", self.tried(self.b + "one", flags=os.O_RDWR | os.O_CREAT))
            self.refused("one")
            os.close(fd)
            self.granted("one")

    def check_close(self):
        """A process that closes any of a file's names releases its record locks: fcntl(2)."""
        self.begin("close of another link")
        fd = make(self.a + "one")
        os.link(self.a + "one", self.a + "two")
        lock(fd, "fcntl")
        self.refused("two")
        os.close(os.open(self.a + "two", os.O_RDWR))
        self.granted("one", "two")
        os.close(fd)


def check(a, b):
    checks = Checks(a + "/", b + "/")
    os.mkdir(checks.a + "dir")
    for kind in KINDS:
        for mover in (checks.a, checks.b):
            checks.check_rename(kind, mover)
        checks.check_links(kind)
    checks.check_onto()
    checks.check_anew()
    checks.check_close()
    checks.begin("")
    os.rmdir(checks.a + "dir")
    say("done", checks.count)


def hold(folder):
    fd = make(folder + "/old")
    lock(fd, "flock")
    os.rename(folder + "/old", folder + "/new")
    say("held")
    signal.pause()


# At random

NAMES = ["a", "b", "c", "dir/d"]  # of files that are renamed and linked
LOOPS = ["x", "y"]  # of files that are only locked, removed and made again, as in the well-known loop
GONE = (errno.ENOENT,)
counts = collections.Counter()


class Worker:
    def __init__(self, state, folder, seed):
        self.state = state
        self.folder = folder + "/"
        self.random = random.Random(seed)

    def call(self, name, function, *arguments, expected=()):
        """Returns what the function does, or None."""
        try:
            result = function(*arguments)
            error = 0
        except OSError as failure:
            result, error = None, failure.errno
        counts[f"{name}={errno.errorcode.get(error, 'ok')}"] += 1
        if error not in (0, *expected):
            say("odd", name, errno.errorcode[error], *arguments)
        return result if error == 0 else None

    def rearrange(self):
        old, new = (self.folder + self.random.choice(NAMES) for _ in range(2))
        how = self.random.choice(["rename", "rename", "link", "unlink"])
        if how == "rename":
            self.call(how, os.rename, old, new, expected=GONE)
        elif how == "link":
            # EPERM: another host has made it.
            self.call(how, os.link, old, new, expected=(*GONE, errno.EEXIST, errno.EPERM, errno.EMLINK))
        else:
            self.call(how, os.unlink, old, expected=GONE)

    def granted(self, fd, kind):
        """The lock, in one mode or the other, waiting or not. Returns whether it is granted, and whether it is shared."""
        shared, waits = self.random.random() < 0.3, self.random.random() < 0.7
        signal.alarm(LIMIT_S)
        name = f"{kind} {'shared' if shared else 'exclusive'}{' waiting' if waits else ''}"
        expected = () if waits else (errno.EAGAIN,)
        before = counts[name + "=ok"]
        self.call(name, lock, fd, kind, shared, waits, expected=expected)
        signal.alarm(0)
        return counts[name + "=ok"] > before, shared

    def work(self, what, shared, others):
        """Nobody else has the lock in a way that excludes this one."""
        with open(f"{self.state}/{what}", "ab") as local:
            try:
                fcntl.flock(local, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except BlockingIOError:
                say("two", what)
            others()

    def take_turn(self):
        kind = self.random.choice(KINDS)
        if self.random.random() < 0.3:
            self.take_loop(kind)
            return
        path = self.folder + self.random.choice(NAMES)
        fd = self.call("open", make, path, expected=(errno.ESTALE,))
        if fd is None:
            return
        if self.random.random() < 0.5:
            self.rearrange()
        granted, shared = self.granted(fd, kind)
        if granted:
            self.work(os.fstat(fd).st_ino, shared, self.rearrange if self.random.random() < 0.7 else lambda: None)
        os.close(fd)
        if self.random.random() < 0.3:
            self.rearrange()

    def take_loop(self, kind):
        name = self.random.choice(LOOPS)
        fd = self.call("open", make, self.folder + name, expected=(errno.ESTALE,))
        if fd is None:
            return
        granted, shared = self.granted(fd, kind)
        if granted:
            self.work(name, shared, lambda: None)
            self.call("unlink", os.unlink, self.folder + name, expected=GONE)
            self.work(name, shared, lambda: None)
        os.close(fd)


def run(state, seed, turns, folder):
    worker = Worker(state, folder, seed)
    for _ in range(turns):
        worker.take_turn()
    say("done", dict(sorted(counts.items())))


def at_random(state, seed, processes, turns, *folders):
    children = []
    for folder in folders:
        for number in range(int(processes)):
            child = os.fork()
            if child == 0:
                run(state, f"{seed} {folder} {number}", int(turns), folder)
                os._exit(0)
            children.append(child)
    for child in children:
        if os.waitpid(child, 0)[1] != 0:
            say("odd", "end of a process")


{"check": check, "hold": hold, "random": at_random}[sys.argv[1]](*sys.argv[2:])
