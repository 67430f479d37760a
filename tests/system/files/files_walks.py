#!/usr/bin/python3
"""What calls say of a path that others take apart meanwhile: files_walks.py ROUNDS FOLDER COMING

FOLDER is a directory of style = file on one mount; on another one COMING, which is the same, the directory `lock` comes and goes, with names
in it: made aside, renamed, emptied, removed, as Borg does it. Each call is made in so many rounds. Prints a line for each error that Linux
does not give for that, CALL ERROR COUNT; and at the end "done".
"""

import errno
import os
import sys
import threading

rounds, folder, coming = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock = folder + "/lock"
own = folder + "/own"
ends = threading.Event()


def quiet(call, *arguments):
    try:
        return call(*arguments)
    except OSError:
        return None


def make(path, flags=0):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o666))


def come_and_go():
    there, aside = coming + "/lock", coming + "/lock.tmp"
    while not ends.is_set():
        quiet(os.mkdir, aside)
        quiet(make, aside + "/file")
        quiet(os.symlink, "file", aside + "/symlink")
        quiet(os.rename, aside, there)
        for path in (there, aside):
            for name in ("file", "symlink"):
                quiet(os.unlink, f"{path}/{name}")
            quiet(os.rmdir, path)
        for name in quiet(os.listdir, there) or (): # what the calls have left
            quiet(os.unlink, f"{there}/{name}")
            quiet(os.rmdir, f"{there}/{name}")


def below():
    """By a descriptor of the directory, which stays when that is gone."""
    fd = os.open(lock, os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(os.open("file", os.O_RDONLY, dir_fd=fd))
        os.mkdir("below", dir_fd=fd)
        os.rmdir("below", dir_fd=fd)
    finally:
        os.close(fd)


def listed():
    """An open directory has attributes."""
    fd = os.open(lock, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fstat(fd)
        os.listdir(fd)
        os.fstat(fd)
    finally:
        os.close(fd)


def made(name, call, remove):
    def make_and_remove():
        call(f"{lock}/{name}")
        remove(f"{lock}/{name}")

    return make_and_remove


def from_own(name, call):
    """The call takes a file of this host's to a name in the directory."""

    def make_and_take():
        make(own)
        call(own, f"{lock}/{name}")
        os.unlink(f"{lock}/{name}")

    return make_and_take


calls = {
    "listdir": lambda: os.listdir(lock),
    "listed": listed,
    "stat": lambda: os.stat(lock),
    "stat-in": lambda: os.stat(lock + "/file"),
    "open": lambda: os.close(os.open(lock + "/file", os.O_RDWR)),
    "create": made("create", make, os.unlink),
    "exclusive": made("exclusive", lambda path: make(path, os.O_EXCL), os.unlink),
    "mkdir": made("mkdir", os.mkdir, os.rmdir),
    "mknod": made("mknod", os.mknod, os.unlink),
    "symlink": made("symlink", lambda path: os.symlink("target", path), os.unlink),
    "link": from_own("link", os.link),
    "rename-in": from_own("rename-in", os.rename),
    "rename-out": lambda: os.rename(lock + "/file", own),
    "readlink": lambda: os.readlink(lock + "/symlink"),
    "unlink": lambda: os.unlink(lock + "/file"),
    "rmdir": lambda: os.rmdir(lock),
    "chmod": lambda: os.chmod(lock, 0o755),
    "chmod-in": lambda: os.chmod(lock + "/file", 0o644),
    "utime": lambda: os.utime(lock),
    "truncate": lambda: os.truncate(lock + "/file", 3),
    "below": below,
}
wrong = {}
comer = threading.Thread(target=come_and_go)
comer.start()
for _ in range(rounds):
    for name, call in calls.items():
        try:
            call()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY):
                key = f"{name} {errno.errorcode[error.errno]}"
                wrong[key] = wrong.get(key, 0) + 1
        quiet(os.unlink, own)
ends.set()
comer.join()
for key, count in sorted(wrong.items()):
    print(key, count)
print("done")
