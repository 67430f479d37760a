"""Long texts of lock files, on two hosts: long_texts.py sizes DIRECTORY OTHER LIMIT | write FILE COUNT [GO]

sizes: what one host writes, cuts and appends the other one reads; what is too long is refused, and changes nothing. LIMIT is how
long, in bytes, a text may be: exactly, if less than what a packet takes.
write: makes a text of COUNT bytes and says "done", or the error; with GO it says "open" before, and waits until that file exists."""
import errno
import os
import random
import sys
import time

what, *arguments = sys.argv[1:]


def refused(expected, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        if error.errno != expected:
            sys.exit(f"{call.__name__}: {errno.errorcode[error.errno]}, expected {errno.errorcode[expected]}")
    else:
        sys.exit(f"{call.__name__}: succeeds, expected {errno.errorcode[expected]}")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_all(descriptor, text, at=0):
    while at < len(text):
        at += os.pwrite(descriptor, text[at : at + (1 << 17)], at)


def check(path, expected, why):
    found = read(path)
    if found != expected:
        differs = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        sys.exit(f"{why}: {len(found)} bytes, expected {len(expected)}; they differ at {differs}")
    if os.stat(path).st_size != len(expected):
        sys.exit(f"{why}: st_size is {os.stat(path).st_size}, expected {len(expected)}")


def sizes(here, there, limit):
    limit = int(limit)
    whole = limit > 1 << 19 # a packet
    beyond = 1 << 20 if whole else limit
    random.seed(1)
    for count in (1, 4096, 4097, 65536, limit):
        for kind in ("any bytes", "zeros", "letters"):
            text = {"any bytes": random.randbytes(count), "zeros": bytes(count), "letters": b"x" * count}[kind]
            descriptor = os.open(f"{here}/text", os.O_WRONLY | os.O_CREAT)
            write_all(descriptor, text)
            os.close(descriptor)
            check(f"{there}/text", text, f"{count} of {kind}")
            os.unlink(f"{there}/text")

    # A hole; too long by a write, a cut, and at the end; the text stays as it was.
    descriptor = os.open(f"{here}/text", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, b"a", 0)
    os.pwrite(descriptor, b"b", limit - 1)
    text = b"a" + bytes(limit - 2) + b"b"
    refused(errno.EFBIG, os.pwrite, descriptor, b"yz", beyond - 1)
    refused(errno.EFBIG, os.pwrite, descriptor, b"z", beyond)
    refused(errno.EFBIG, os.ftruncate, descriptor, beyond + 1)
    refused(errno.EFBIG, os.truncate, f"{there}/text", beyond + 1)
    os.close(descriptor)
    check(f"{there}/text", text, "a hole")

    # Both hosts write at a time, and one appends.
    os.truncate(f"{there}/text", 50000)
    theirs = os.open(f"{there}/text", os.O_WRONLY | os.O_APPEND)
    mine = os.open(f"{here}/text", os.O_WRONLY)
    expected = bytearray(b"a" + bytes(49999))
    for i in range(20):
        expected[i * 5 : i * 5 + 5] = b"mine."
        expected += b"theirs"
        os.pwrite(mine, b"mine.", i * 5)
        os.write(theirs, b"theirs")
    os.close(mine)
    os.close(theirs)
    for directory in (here, there):
        check(f"{directory}/text", bytes(expected), "both write")

    # All names of a file are replaced at once: with two of them, or by the link that makes the second, it is half as long. What a
    # renamed directory has in it counts together.
    descriptor = os.open(f"{here}/text", os.O_WRONLY | os.O_TRUNC)
    if whole:
        write_all(descriptor, bytes(limit // 2 + 16384))
        refused(errno.EFBIG, os.link, f"{here}/text", f"{here}/other")
        refused(errno.ENOENT, os.stat, f"{there}/other")
    half = limit // 2 - 8192 if whole else limit
    os.ftruncate(descriptor, half)
    os.link(f"{here}/text", f"{here}/other")
    os.pwrite(descriptor, b"z", half - 1)
    refused(errno.EFBIG, os.pwrite, descriptor, b"z", limit - 1 if whole else limit)
    os.close(descriptor)
    for name in ("text", "other"):
        check(f"{there}/{name}", bytes(half - 1) + b"z", "two names")
    os.mkdir(f"{here}/folder")
    os.rename(f"{here}/text", f"{here}/folder/text")
    os.unlink(f"{here}/other")
    os.truncate(f"{here}/folder/text", limit)
    if whole:
        os.close(os.open(f"{here}/folder/more", os.O_WRONLY | os.O_CREAT))
        os.truncate(f"{here}/folder/more", 32768)
        refused(errno.EXDEV, os.rename, f"{here}/folder", f"{here}/moved")
        os.unlink(f"{here}/folder/more")
    os.rename(f"{here}/folder", f"{here}/moved")
    check(f"{there}/moved/text", bytes(half - 1) + b"z" + bytes(limit - half), "moved")
    os.unlink(f"{there}/moved/text")
    os.rmdir(f"{here}/moved")


def write(path, count, go=None):
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        if go:
            print("open", flush=True)
        while go and not os.path.exists(go):
            time.sleep(0.01)
        random.seed(int(count))
        write_all(descriptor, random.randbytes(int(count)))
        os.close(descriptor)
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])


{"sizes": sizes, "write": write}[what](*arguments)
