#!/usr/bin/python3
"""The times of files in a directory of style = file, on two mounts of it: files_times.py A B; prints a line for each that is wrong."""

import os
import sys
import time

a, b = sys.argv[1:3]


def times(name):
    """The same on both hosts."""
    stats = [os.stat(f"{folder}/{name}") for folder in (a, b)]
    found = [(stat.st_atime_ns, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_nlink) for stat in stats]
    if found[0] != found[1]:
        print(name, "on A", found[0], "on B", found[1])
    return stats[0]


def expect(what, is_right):
    if not is_right:
        print(what)


def wait():
    """The next change is later by the clock of the servers."""
    time.sleep(0.02)


def make(name):
    with open(f"{a}/{name}", "x", encoding="ascii") as file:
        file.write("text")


make("one")
for atime, mtime in ((1000, 2000), (2000, 1000), (-5, 7), (3000, 3000)):
    os.utime(b + "/one", (atime, mtime))
    stat = times("one")
    expect(f"utime {atime} {mtime}", (stat.st_atime, stat.st_mtime) == (atime, mtime))
os.utime(a + "/one", (1000, 2000))
os.chmod(a + "/one", 0o600)
os.rename(a + "/one", a + "/two")
stat = times("two")
expect("rename keeps what utime set", (stat.st_atime, stat.st_mtime) == (1000, 2000))
os.utime(a + "/two")
stat = times("two")
expect("utime to now is one time, of the clock of the store", stat.st_atime_ns == stat.st_mtime_ns == stat.st_ctime_ns)

wait()
before = stat
os.link(a + "/two", a + "/link")
for name in ("two", "link"):
    stat = times(name)
    expect(f"link: {name}", stat.st_ctime_ns > before.st_ctime_ns and stat.st_mtime_ns == before.st_mtime_ns and stat.st_nlink == 2)
wait()
before = times("link")
os.unlink(a + "/two")
stat = times("link")
expect("unlink of the other name", stat.st_ctime_ns > before.st_ctime_ns and stat.st_mtime_ns == before.st_mtime_ns and stat.st_nlink == 1)
os.link(a + "/link", a + "/two")
make("new")
wait()
before = times("link")
os.rename(a + "/new", a + "/two")
stat = times("link")
expect("rename onto the other name", stat.st_ctime_ns > before.st_ctime_ns and stat.st_mtime_ns == before.st_mtime_ns and stat.st_nlink == 1)
for name in ("link", "two"):
    os.unlink(f"{a}/{name}")
