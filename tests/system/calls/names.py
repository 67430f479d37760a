#!/usr/bin/python3
"""names.py MOUNT MOUNT: locks with all sorts of names, all held at once on one mount, refused on the other.

Also below directories. Both may be the same mount. Ends with an error that names what went wrong.
"""

import fcntl
import os
import sys

NAMES = [
    b"a", b"A", b"with space", b" leading", b"trailing ", b"100%", b"%41", b"%", b"%%", b"%2F", b"%e4",
    b"new\nline", b"\n", b"tab\tand\rreturn", b"\x01", b"\x1f\x7f", b"\xff", b"\xfe\xff", b"\xc3", b"\xc3\xa4", b"\xe4",
    b"\xed\xa0\x80", b"\xef\xbf\xbf", b"\xf0\x9f\x94\x92", b"\xc2\x80", b"\xee\x80\x80", b"...", b".hidden", b"..a", b"a.",
    b"zookeeper", b"quota", b"_c_0-__WRIT__0000000001", b"lock-0000000001", b"-rf", b"*", b"\\", b"'\"", b"a:b", b"a;b",
    b"x" * 255, b"\xff" * 255, b"%" * 255, b"y" * 254, "ä".encode() * 127, bytes(range(1, 47)), bytes(range(48, 256)),
]


def take(path, operation):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def check(condition, name, text):
    if not condition:
        sys.exit(f"{name!r}: {text}")


first, second = (os.fsencode(argument) for argument in sys.argv[1:])
folders = [b"", b"dir %25/", b"\xff\n/"]
for mount in {first, second}:
    for folder in folders[1:]:
        os.mkdir(mount + b"/" + folder)

paths = [folder + name for folder in folders for name in NAMES]
held = {}
for path in paths:
    held[path] = take(first + b"/" + path, fcntl.LOCK_EX)
    check(held[path] is not None, path, "could not be locked though nobody else holds it")
for path in paths:
    check(take(second + b"/" + path, fcntl.LOCK_SH) is None, path, "does not exclude the other host")
    check(take(first + b"/" + path, fcntl.LOCK_SH) is None, path, "does not exclude another handle")
for folder in folders:
    listed = set(os.listdir(first + b"/" + folder))
    for name in NAMES:
        check(name in listed, folder + name, "is not listed while it is open")
for path in paths:
    os.close(held[path])
for path in paths:
    fd = os.open(second + b"/" + path, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)  # waits, because the release may not have reached the servers
    os.close(fd)
# Exclusive open of each name as well, the way round.
for path in paths:
    fd = os.open(second + b"/" + path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    check(take(first + b"/" + path, fcntl.LOCK_EX) is None, path, "exclusive open does not exclude the other host")
    os.close(fd)
for mount in {first, second}:
    for path in paths:
        try:
            os.unlink(mount + b"/" + path)
        except FileNotFoundError:
            pass
    for folder in folders[1:]:
        os.rmdir(mount + b"/" + folder)
