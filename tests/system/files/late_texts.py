"""Texts of lock files that are written again and again: late_texts.py WHAT DIRECTORY ...

rewrite NAME ROUNDS TRUTH BY: in each round takes the lock, finds the text that the last holder left by TRUTH, a file beside the mount,
writes 20 others, notes the last one there, and releases. BY says how: flock of the file, range (a record lock), beside (flock of
another file, with the text still open), close, mkdir, or rename.
endless NAME TRUTH: takes the lock, and writes until it is killed; TRUTH has what was written by then.
check NAME TRUTH: takes the lock; the text is what TRUTH has, or what was to be written next.
count NAME WRITES: writes so often, without a close; prints in how many milliseconds."""
import fcntl
import os
import sys
import time

what, directory, name, *rest = sys.argv[1:]
path = f"{directory}/files/{name}"


def open_text():
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


def read(descriptor):
    return int(os.pread(descriptor, 100, 0) or b"0")


def write(descriptor, number):
    text = b"%020d\n" % number
    if os.pwrite(descriptor, text, 0) != len(text):
        sys.exit("a part was written")


def read_truth(truth):
    try:
        with open(truth) as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return 0


def note_truth(truth, number):
    with open(truth + f".{os.getpid()}", "w") as file:
        file.write(str(number))
    os.rename(file.name, truth)


class Lock:
    """Held from its making to release()."""

    def __init__(self, by):
        self.by = by
        self.text = open_text()
        self.beside = None
        if by == "beside":
            self.beside = os.open(f"{directory}/beside-{name}", os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(self.beside, fcntl.LOCK_EX)
        elif by == "range":
            fcntl.lockf(self.text, fcntl.LOCK_EX)
        elif by in ("flock", "close"):
            fcntl.flock(self.text, fcntl.LOCK_EX)
        elif by == "mkdir":
            self.until(lambda: os.mkdir(path + ".lock"), FileExistsError)
        else:
            self.until(lambda: os.rename(path + ".free", path + f".{os.getpid()}"), FileNotFoundError)

    @staticmethod
    def until(call, error):
        while True:
            try:
                return call()
            except error:
                time.sleep(0.005)

    def release(self):
        if self.by == "flock":
            fcntl.flock(self.text, fcntl.LOCK_UN)
        elif self.by == "range":
            fcntl.lockf(self.text, fcntl.LOCK_UN)
        elif self.by == "beside":
            fcntl.flock(self.beside, fcntl.LOCK_UN)
        elif self.by == "mkdir":
            os.rmdir(path + ".lock")
        elif self.by == "rename":
            os.rename(path + f".{os.getpid()}", path + ".free")
        os.close(self.text)
        if self.beside is not None:
            os.close(self.beside)


def rewrite(rounds, truth, by):
    for _ in range(int(rounds)):
        lock = Lock(by)
        found, expected = read(lock.text), read_truth(truth)
        if found != expected:
            sys.exit(f"{by}: found {found}, expected {expected}")
        for number in range(found + 1, found + 21):
            write(lock.text, number)
            if read(lock.text) != number:
                sys.exit(f"{by}: wrote {number}, and does not find it")
        note_truth(truth, found + 20)
        lock.release()


def endless(truth):
    text = open_text()
    fcntl.flock(text, fcntl.LOCK_EX)
    number = read(text)
    while True:
        number += 1
        write(text, number)
        note_truth(truth, number)


def check(truth):
    text = open_text()
    fcntl.flock(text, fcntl.LOCK_EX)
    found, expected = read(text), read_truth(truth)
    if found not in (expected, expected + 1):
        sys.exit(f"found {found}, expected {expected} or one more")
    note_truth(truth, found)


def count(writes):
    text = open_text()
    begin = time.monotonic()
    for number in range(int(writes)):
        write(text, number)
    print(int(1000 * (time.monotonic() - begin)))
    time.sleep(0.3)
    if os.stat(path).st_mtime > time.time() + 5:
        sys.exit("the time of the file is in the future")


{"rewrite": rewrite, "endless": endless, "check": check, "count": count}[what](*rest)
