#!/usr/bin/python3
"""The times of directories in a directory of style = file, on two mounts of it: files_directories.py A B; prints a line for each that
is wrong."""

import mailbox
import os
import sys
import time

a, b = sys.argv[1:3]
DEADLINE = 20


def times(folder, path):
    stat = os.stat(f"{folder}/{path}")
    return (stat.st_mtime_ns, stat.st_ctime_ns)


def await_times(path, what, is_right):
    """What the other host sees, soon."""
    end = time.monotonic() + DEADLINE
    while not is_right(found := times(b, path)) and time.monotonic() < end:
        time.sleep(0.01)
    if not is_right(found):
        print(what, "is not seen on the other host:", found)
    return found


def await_same(path, what):
    end = time.monotonic() + DEADLINE
    while (seen := times(b, path)) != times(a, path) and time.monotonic() < end:
        time.sleep(0.01)
    if seen != times(a, path):
        print(f"{what}: {path} has {times(a, path)} here, {seen} on the other host")
    return seen


def changes(what, path, function, *arguments):
    """The call changes both times of the directory: here at once; and on the other host, where they become the same."""
    time.sleep(0.02)  # by the clock of the servers
    before = times(b, path)
    function(*arguments)
    after = times(a, path)
    if after[0] <= before[0] or after[1] <= before[1]:
        print(f"{what}: {path} had {before}, and has {after}")
    await_times(path, what, lambda found: found[0] > before[0])
    await_same(path, what)


def make(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


os.mkdir(a + "/d")
os.mkdir(a + "/d/e")
for again in range(2):  # each soon after the one before
    changes("create", "d", make, a + "/d/file")
    changes("mkdir", "d", os.mkdir, a + "/d/sub")
    changes("symlink", "d", os.symlink, "target", a + "/d/symlink")
    changes("link", "d/e", os.link, a + "/d/file", a + "/d/e/link")
    changes("rename from", "d", os.rename, a + "/d/file", a + "/d/e/file")
    changes("rename to", "d/e", os.rename, a + "/d/symlink", a + "/d/e/symlink")
    changes("unlink", "d/e", os.unlink, a + "/d/e/file")
    changes("rmdir", "d", os.rmdir, a + "/d/sub")
    for name in ("link", "symlink"):
        os.unlink(f"{a}/d/e/{name}")

# What changes no name changes no time of the directory.
make(a + "/d/file")
before = await_same("d", "create")
with open(a + "/d/file", "w", encoding="ascii") as file:
    file.write("text")
os.chmod(a + "/d/file", 0o600)
for folder in (a, b):
    file, empty = folder + "/d/file", folder + "/d/none"
    refused = {
        "open": (make, file),
        "mkdir": (os.mkdir, file),
        "mknod": (os.mknod, file),
        "symlink": (os.symlink, "target", file),
        "link": (os.link, folder + "/d/e", empty),
        "rename": (os.rename, empty, file),
        "unlink": (os.unlink, empty),
        "rmdir": (os.rmdir, file),
    }
    for what, (call, *arguments) in refused.items():
        try:
            call(*arguments)
            print(what, "succeeds")
        except OSError:
            pass
    os.listdir(folder + "/d")
    for host in (a, b):
        if times(host, "d") != before:
            print(f"the times of the directory have changed by calls on {folder}, and no name in it has")

# A directory of another host, and both at once.
for index in range(20):
    make(f"{a}/d/a{index}")
    make(f"{b}/d/b{index}")
make(b + "/d/last")
last = os.stat(b + "/d/last").st_ctime_ns
await_times("d", "a name of each host", lambda found: found[0] >= last or times(a, "d")[0] >= last)

# Python's Maildir compares the times.
mail = mailbox.Maildir(a + "/box")
seen = mailbox.Maildir(b + "/box")
for count in range(1, 4):
    mail.add(b"Subject: one\n\nText\n")
    end = time.monotonic() + DEADLINE
    while len(seen) != count and time.monotonic() < end:
        time.sleep(0.05)
    if len(seen) != count:
        print(f"the other host's Maildir has {len(seen)} messages of {count}")
