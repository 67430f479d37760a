#!/usr/bin/python3
"""Makes its lock file and then locks it without waiting, by the system calls of a library: made_and_locked.py LIBRARY FILE.

Prints "held", and holds until it is killed; or the call that failed and its errno.

php, php-shared   Symfony's FlockStore: fopen "r+", or "r", else "x", else the first again; then LOCK_NB
java              Lucene's NativeFSLockFactory: createFile, whose failure is no matter; then open, and F_SETLK
dotnet            FileMode.CreateNew with FileShare.None: an exclusive open, and LOCK_NB
"""

import errno
import fcntl
import os
import signal
import sys

EXCLUSIVE = os.O_CREAT | os.O_EXCL


def open_file(path):
    try:
        return os.open(path, os.O_RDWR)
    except OSError:
        return os.open(path, os.O_RDONLY)


def open_php(path):
    try:
        return open_file(path)
    except OSError:
        pass
    try:
        return os.open(path, os.O_RDWR | EXCLUSIVE, 0o666)
    except OSError:
        return open_file(path)


def open_java(path):
    try:
        os.close(os.open(path, os.O_WRONLY | EXCLUSIVE, 0o666))
    except FileExistsError:
        pass
    return os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)


def open_dotnet(path):
    return os.open(path, os.O_RDWR | EXCLUSIVE, 0o666)


LIBRARIES = {
    "php": (open_php, fcntl.flock, fcntl.LOCK_EX),
    "php-shared": (open_php, fcntl.flock, fcntl.LOCK_SH),
    "java": (open_java, fcntl.lockf, fcntl.LOCK_EX),
    "dotnet": (open_dotnet, fcntl.flock, fcntl.LOCK_EX),
}

open_library, lock, mode = LIBRARIES[sys.argv[1]]
step = "open"
try:
    descriptor = open_library(sys.argv[2])
    step = "lock"
    lock(descriptor, mode | fcntl.LOCK_NB)
except OSError as error:
    print(step, errno.errorcode[error.errno], flush=True)
    sys.exit()
print("held", flush=True)
signal.pause()
