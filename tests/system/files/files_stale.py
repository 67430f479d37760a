#!/usr/bin/python3
"""What one host has removed, and another one may remember: files_stale.py TIMES A B

A and B are mounts of one directory of style = file. In each of so many rounds A makes a name, B removes it, and A looks at once. Prints
a line for each way to look: its name, how often A still found what is gone, and of how many rounds; then

created ERROR TIMES...    what open(O_CREAT) on A said while B removed the name
orphan CALL...            which calls failed on a file that A has open, whose name, and whose directory, A or B has removed
"""

import errno
import fcntl
import os
import sys
import threading
import time

times, a, b = int(sys.argv[1]), sys.argv[2], sys.argv[3]
there, here = b + "/own", a + "/own"


def exists(call, *arguments):
    try:
        call(*arguments)
        return True
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise


def count(name, look, make=None):
    """Whether look() finds what make() has made on A, while it is open, once B has removed it."""
    found = 0
    for _ in range(times):
        if make is None:
            fd = os.open(here, os.O_RDWR | os.O_CREAT)
        else:
            make()
            fd = -1
        os.unlink(there)
        found += look(fd)
        if fd >= 0:
            os.close(fd)
    print(name, found, "of", times)


def is_replaced_file(fd):
    os.mkdir(there)
    try:
        return os.path.isfile(here)
    finally:
        os.rmdir(there)


def cannot_be_made(call, undo):
    def look(fd):
        try:
            call(here)
        except FileExistsError:
            return True
        undo(here)
        return False

    return look


def written(fd):
    """A text that waits to be stored goes on for who has it open, and for nobody else."""
    return exists(os.stat, here)


def make_and_write():
    with open(here, "w") as file:
        file.write("text")
        file.flush()


def hand_over():
    """A waits for the lock of a file that B removes before it unlocks."""
    found = 0
    for _ in range(times):
        mine = os.open(here, os.O_RDWR | os.O_CREAT)
        held = os.open(there, os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
        waiter = threading.Thread(target=fcntl.flock, args=(mine, fcntl.LOCK_EX))
        waiter.start()
        time.sleep(0.005)
        os.unlink(there)
        os.close(held)
        waiter.join()
        try:
            found += os.stat(here).st_ino == os.fstat(mine).st_ino
        except FileNotFoundError:
            pass
        if os.fstat(mine).st_nlink != 0:
            found += 1
        os.close(mine)
    print("hand-over", found, "of", times)


def create():
    """open(O_CREAT) of a name that others remove makes it, or opens it."""
    results = {}
    ends = False

    def remove():
        while not ends:
            exists(os.unlink, there)

    remover = threading.Thread(target=remove)
    remover.start()
    for _ in range(times * 10):
        try:
            os.close(os.open(here, os.O_RDWR | os.O_CREAT))
            result = "ok"
        except OSError as error:
            result = errno.errorcode[error.errno]
        results[result] = results.get(result, 0) + 1
    ends = True
    remover.join()
    exists(os.unlink, here)
    print("created", *(f"{result} {number}" for result, number in sorted(results.items())))


def orphan():
    """Who has a file open goes on with it."""
    failed = []
    for remover in (a, b):
        for last in ("own/file", "own"):
            os.mkdir(here)
            fd = os.open(here + "/file", os.O_RDWR | os.O_CREAT)
            os.unlink(remover + "/own/file")
            if last == "own":
                os.rmdir(remover + "/own")
            calls = {
                "write": lambda: os.write(fd, b"hello") == 5,
                "read": lambda: os.pread(fd, 9, 0) == b"hello",
                "ftruncate": lambda: os.ftruncate(fd, 2),
                "fchmod": lambda: os.fchmod(fd, 0o600),
                "utime": lambda: os.utime(fd, (1, 2)),
                "fstat": lambda: (os.fstat(fd).st_nlink, os.fstat(fd).st_size) == (0, 2),
                "flock": lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
            }
            for name, call in calls.items():
                try:
                    if call() is False:
                        failed.append(f"{name}: wrong")
                except OSError as error:
                    failed.append(f"{name}: {errno.errorcode[error.errno]}")
            os.close(fd)
            if last != "own":
                os.rmdir(here)
    print("orphan", *failed)


count("replaced", is_replaced_file)
count("stat", lambda fd: exists(os.stat, here))
count("access", lambda fd: os.access(here, os.F_OK))
count("open", lambda fd: exists(lambda: os.close(os.open(here, os.O_RDONLY))))
count("chmod", lambda fd: exists(os.chmod, here, 0o600))
count("truncate", lambda fd: exists(os.truncate, here, 1))
count("rename", lambda fd: exists(os.rename, here, here + ".new"))
count("unlink", lambda fd: exists(os.unlink, here))
count("same-inode", lambda fd: os.fstat(fd).st_nlink != 0)
count("readlink", lambda fd: exists(os.readlink, here), lambda: os.symlink("target", here))
count("mkdir", cannot_be_made(os.mkdir, os.rmdir))
count("exclusive", cannot_be_made(lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)), os.unlink))
count("written", written, make_and_write)
hand_over()
create()
orphan()
