#!/usr/bin/python3
"""Renames directories with names in them, in a directory of style = file on two mounts of it.

cases A B            each case once; prints a line for what is wrong
count FOLDER OWN TURNS COUNTER   a counter in a local file, behind a lock that is made as Borg makes it: a directory with a file in it is
                     renamed to `lock`; prints "done COUNT", how often the lock was taken
"""

import os
import sys
import time

from call_result import result


def expect(what, expected, found):
    if found != expected:
        print(f"{what}: expected {expected}, found {found}")


def make(path, text="", mode=0o640):
    with open(path, "x", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)


def names(folder):
    return sorted(os.listdir(folder))


def cases(a, b):
    for maker, mover, other in ((a, a, b), (a, b, a)):
        os.mkdir(maker + "/old", 0o750)
        make(maker + "/old/file", "text")
        os.symlink("target", maker + "/old/symlink")
        os.mkdir(maker + "/old/folder")
        number = os.stat(a + "/old/file").st_ino
        expect("rename", "ok", result(os.rename, mover + "/old", mover + "/new"))
        for host in (a, b):
            expect("what is there", ["new"], names(host))
            expect("what is in it", ["file", "folder", "symlink"], names(host + "/new"))
            stat = os.stat(host + "/new/file")
            with open(host + "/new/file", encoding="ascii") as file:
                expect("the file", ("text", number, 0o640, 1), (file.read(), stat.st_ino, stat.st_mode & 0o777, stat.st_nlink))
            expect("the link", "target", os.readlink(host + "/new/symlink"))
            expect("the mode", 0o750, os.stat(host + "/new").st_mode & 0o777)
            expect("the old name", "ENOENT", result(os.stat, host + "/old"))
        make(b + "/new/fourth")
        expect("four names", "EXDEV", result(os.rename, mover + "/new", mover + "/newer"))
        os.unlink(a + "/new/fourth")
        os.mkdir(b + "/new/folder/deeper")
        expect("deeper names", "EXDEV", result(os.rename, mover + "/new", mover + "/newer"))
        os.rmdir(b + "/new/folder/deeper")
        for target in ("empty", "full"):
            os.mkdir(f"{b}/{target}")
        make(b + "/full/file")
        for target in ("empty", "full"):
            expect(f"onto one that is {target}", "ENOTEMPTY", result(os.rename, mover + "/new", f"{mover}/{target}"))
        expect("what is in it still", ["file", "folder", "symlink"], names(b + "/new"))
        os.rmdir(a + "/new/folder")
        for name in ("new/file", "new/symlink", "full/file"):
            os.unlink(f"{b}/{name}")
        # Only its host can tell that it is empty.
        expect("rmdir on the other host", "ENOTEMPTY", result(os.rmdir, other + "/new"))
        expect("rename on the other host", "EBUSY", result(os.rename, other + "/new", other + "/newer"))
        expect("replaced on the other host", "ENOTEMPTY", result(os.rename, other + "/empty", other + "/new"))
        os.rmdir(mover + "/new")
        for name in ("empty", "full"):
            os.rmdir(f"{b}/{name}")
    # An open file goes along, with its lock and its other name.
    os.mkdir(a + "/old")
    make(a + "/old/file")
    os.link(a + "/old/file", a + "/link")
    with open(a + "/old/file", "r+", encoding="ascii") as file:
        os.rename(a + "/old", a + "/new")
        file.write("written")
        file.flush()
        os.fsync(file.fileno())
        for name in ("new/file", "link"):
            with open(f"{b}/{name}", encoding="ascii") as other:
                expect(name, ("written", 2), (other.read(), os.fstat(other.fileno()).st_nlink))
    for name in ("new/file", "link"):
        os.unlink(f"{a}/{name}")
    os.rmdir(a + "/new")


def enter(counter):
    """Two at a time lose a count, and are seen."""
    with open(counter, encoding="ascii") as file:
        count = int(file.read())
    time.sleep(0.001)
    with open(counter, "w", encoding="ascii") as file:
        file.write(str(count + 1))


def count(folder, own, turns, counter):
    taken = 0
    lock = folder + "/lock"
    while taken < turns:
        temporary = f"{folder}/lock.{own}.tmp"
        os.mkdir(temporary)
        make(f"{temporary}/{own}")
        while (error := result(os.rename, temporary, lock)) != "ok":
            expect("rename", "ENOTEMPTY", error)
            # Borg looks who has the lock, and takes one away in which there is nothing.
            for call in (os.listdir, os.rmdir):
                found = result(call, lock)
                if found not in ("ok", "ENOENT", "ENOTEMPTY"):
                    print(f"{call.__name__}:", found)
        enter(counter)
        os.unlink(f"{lock}/{own}")
        result(os.rmdir, lock)
        taken += 1
    print("done", taken)


if sys.argv[1] == "cases":
    cases(*sys.argv[2:])
else:
    count(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
