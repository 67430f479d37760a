#!/usr/bin/python3
"""file_calls.py [--tmpfs] FOLDER REFERENCE [OTHER]: system calls that make lock files, in FOLDER and in REFERENCE, a tmpfs.

Each sequence of calls is made in a new folder of each, and each call must have the same result, or the same errno. What may be
different is in DIFFERENT, with its reason. With OTHER, the same folder of another host, the calls are made once more, on both hosts
in turn: what one makes, takes away or changes, the other one finds so. Only a file's own host can link and rename it: where that is
done, the other host only looks. With --tmpfs, FOLDER is a tmpfs, too, and nothing may be different. Prints what is different, a line each, and ends with 1 if anything is.
"""

import ctypes
import errno
import os
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE = -100, 1, 2
UTIME_OMIT = (1 << 30) - 2
LONG = "n" * 255
RAW = b"raw\xff\xfe".decode(errors="surrogateescape")
CREATE, EXCLUSIVE = os.O_CREAT, os.O_CREAT | os.O_EXCL


def checked(result):
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Folder:
    """The calls, relative to a folder; what they return is the same on any file system that does what POSIX and Linux say."""

    def __init__(self, path):
        self.path = path
        self.descriptors = {}
        self.inodes = {}

    def at(self, name):
        return os.path.join(self.path, name) if name != "." else self.path

    def open(self, name, flags, mode=0o644):
        """Opened and closed."""
        os.close(os.open(self.at(name), flags, mode))

    def keep(self, key, name, flags, mode=0o644):
        self.descriptors[key] = os.open(self.at(name), flags, mode)

    def close(self, key):
        os.close(self.descriptors.pop(key))

    def write(self, name, text):
        fd = os.open(self.at(name), os.O_WRONLY)
        try:
            return os.write(fd, text)
        finally:
            os.close(fd)

    def append(self, name, text):
        fd = os.open(self.at(name), os.O_WRONLY | os.O_APPEND)
        try:
            return os.write(fd, text)
        finally:
            os.close(fd)

    def read(self, name):
        with open(self.at(name), "rb", buffering=0) as file:
            return file.read()

    def write_kept(self, key, text, offset=0):
        return os.pwrite(self.descriptors[key], text, offset)

    def read_kept(self, key):
        return os.pread(self.descriptors[key], 8192, 0)

    def sync_kept(self, key):
        os.fsync(self.descriptors[key])

    def truncate_kept(self, key, size):
        os.ftruncate(self.descriptors[key], size)

    def stat_kept(self, key):
        return self.described(os.fstat(self.descriptors[key]))

    def truncate(self, name, size):
        os.truncate(self.at(name), size)

    def mkdir(self, name, mode=0o755):
        os.mkdir(self.at(name), mode)

    def rmdir(self, name):
        os.rmdir(self.at(name))

    def unlink(self, name):
        os.unlink(self.at(name))

    def symlink(self, target, name):
        os.symlink(target, self.at(name))

    def readlink(self, name):
        return os.readlink(self.at(name))

    def link(self, old, new):
        os.link(self.at(old), self.at(new), follow_symlinks=False)

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def rename2(self, old, new, flags):
        checked(libc.renameat2(AT_FDCWD, os.fsencode(self.at(old)), AT_FDCWD, os.fsencode(self.at(new)), flags))

    def mknod(self, name, mode, device=0):
        os.mknod(self.at(name), mode, device)

    def chmod(self, name, mode):
        os.chmod(self.at(name), mode)

    def chown(self, name, uid, gid):
        os.chown(self.at(name), uid, gid, follow_symlinks=False)

    def access(self, name, mode):
        return os.access(self.at(name), mode)

    def utime(self, name, seconds):
        os.utime(self.at(name), (seconds, seconds))

    def touch(self, name):
        """The present, as utimes(2) with NULL; whether the time is now."""
        os.utime(self.at(name))
        return abs(os.stat(self.at(name)).st_mtime - time.time()) < 60

    def mtime(self, name):
        return int(os.lstat(self.at(name)).st_mtime)

    def is_new(self, name):
        """Whether the times of a file that was just made are now."""
        found = os.lstat(self.at(name))
        return all(abs(when - time.time()) < 60 for when in (found.st_mtime, found.st_ctime))

    def described(self, found):
        """Type, mode, links, owner, size; the links and the size of a directory are every file system's own matter."""
        directory = stat.S_ISDIR(found.st_mode)
        return (stat.filemode(found.st_mode), None if directory else found.st_nlink, found.st_uid, found.st_gid,
                None if directory else found.st_size)

    def stat(self, name):
        return self.described(os.lstat(self.at(name)))

    def follow(self, name):
        return self.described(os.stat(self.at(name)))

    def same(self, one, other):
        """Whether the two names are one file."""
        return os.path.samestat(os.lstat(self.at(one)), os.lstat(self.at(other)))

    def list(self, name="."):
        return sorted(os.listdir(self.at(name)))

    def kinds(self, name="."):
        """What readdir(3) says of each entry."""
        with os.scandir(self.at(name)) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries)


# Sequences of calls: each its name, then the calls. (call, argument...).
SEQUENCES = {
    "exclusive create": [
        ("open", "a", EXCLUSIVE | os.O_WRONLY), ("open", "a", EXCLUSIVE | os.O_WRONLY), ("stat", "a"), ("is_new", "a"), ("list",),
        ("open", "a", CREATE | os.O_RDWR), ("open", "a", EXCLUSIVE | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW), ("unlink", "a"),
        ("unlink", "a"), ("stat", "a"), ("open", "a", os.O_RDONLY), ("open", "a", EXCLUSIVE | os.O_WRONLY, 0o000), ("stat", "a"),
        ("unlink", "a"), ("list",)],
    "exclusive create on what is no file": [
        ("mkdir", "d"), ("open", "d", EXCLUSIVE | os.O_WRONLY), ("open", "d", CREATE | os.O_RDWR), ("open", "d", os.O_RDONLY),
        ("symlink", "nowhere", "s"), ("open", "s", EXCLUSIVE | os.O_WRONLY), ("open", "s", os.O_RDONLY | os.O_NOFOLLOW),
        ("open", "s", os.O_RDONLY), ("rmdir", "d"), ("unlink", "s"), ("list",)],
    "create": [
        ("open", "a", CREATE | os.O_WRONLY, 0o600), ("stat", "a"), ("open", "a", CREATE | os.O_WRONLY, 0o644), ("stat", "a"),
        ("write", "a", b"text"), ("open", "a", CREATE | os.O_RDWR), ("read", "a"), ("open", "a", CREATE | os.O_WRONLY | os.O_TRUNC),
        ("read", "a"), ("write", "a", b"one\n"), ("append", "a", b"two\n"), ("read", "a"), ("stat", "a"), ("unlink", "a")],
    "directory": [
        ("mkdir", "d"), ("mkdir", "d"), ("stat", "d"), ("list", "d"), ("list",), ("unlink", "d"), ("open", "d/pid", CREATE | os.O_WRONLY),
        ("write", "d/pid", b"123\n"), ("rmdir", "d"), ("list", "d"), ("kinds",), ("unlink", "d/pid"), ("unlink", "d/pid"), ("rmdir", "d"),
        ("rmdir", "d"), ("stat", "d"), ("stat", "d/pid"), ("open", "d/pid", CREATE | os.O_WRONLY), ("mkdir", "d/d"), ("mkdir", "d", 0o700),
        ("stat", "d"), ("mkdir", "d/d"), ("mkdir", "d/d/d"), ("rmdir", "d/d"), ("open", "d/d/d/f", EXCLUSIVE | os.O_WRONLY), ("kinds", "d/d/d"),
        ("unlink", "d/d/d/f"), ("rmdir", "d/d/d"), ("rmdir", "d/d"), ("rmdir", "d"), ("open", "f", CREATE | os.O_WRONLY), ("mkdir", "f"),
        ("rmdir", "f"), ("mkdir", "f/d"), ("open", "f/g", CREATE | os.O_WRONLY), ("stat", "f/g"), ("unlink", "f")],
    "symbolic link": [
        ("symlink", "root@host.123:456", "s"), ("symlink", "other", "s"), ("readlink", "s"), ("stat", "s"), ("list",), ("kinds",),
        ("follow", "s"), ("rmdir", "s"), ("open", "f", CREATE | os.O_WRONLY), ("readlink", "f"), ("symlink", "f", "t"), ("follow", "t"),
        ("same", "t", "f"), ("write", "t", b"through"), ("read", "f"), ("readlink", "none"), ("symlink", "", "e"), ("symlink", "a/../b", "g"),
        ("readlink", "g"), ("symlink", "t" * 1000, "h"), ("readlink", "h"), ("open", "t", EXCLUSIVE | os.O_WRONLY), ("mkdir", "s"),
        ("unlink", "s"), ("unlink", "t"), ("follow", "f"), ("unlink", "f"), ("unlink", "g"), ("unlink", "h"), ("list",)],
    "link": [
        ("open", "f", EXCLUSIVE | os.O_WRONLY), ("write", "f", b"123\n"), ("stat", "f"), ("link", "f", "l"), ("stat", "f"), ("stat", "l"),
        ("same", "f", "l"), ("link", "f", "l"), ("read", "l"), ("list",), ("open", "l", EXCLUSIVE | os.O_WRONLY), ("unlink", "f"),
        ("stat", "l"), ("read", "l"), ("link", "f", "m"), ("link", "none", "m"), ("open", "f", EXCLUSIVE | os.O_WRONLY), ("link", "f", "l"),
        ("stat", "f"), ("unlink", "l"), ("link", "f", "l"), ("stat", "f"), ("unlink", "l"), ("stat", "f"), ("unlink", "f"), ("mkdir", "d"),
        ("link", "d", "l"), ("rmdir", "d")],
    "link with a reader": [
        ("keep", "fd", "f", EXCLUSIVE | os.O_RDWR), ("write_kept", "fd", b"9\n"), ("link", "f", "l"), ("stat_kept", "fd"), ("unlink", "f"),
        ("stat_kept", "fd"), ("unlink", "l"), ("read_kept", "fd"), ("stat_kept", "fd"), ("close", "fd"), ("list",)],
    "rename": [
        ("open", "f", EXCLUSIVE | os.O_WRONLY), ("write", "f", b"one"), ("rename", "f", "g"), ("stat", "f"), ("read", "g"), ("list",),
        ("open", "f", EXCLUSIVE | os.O_WRONLY), ("write", "f", b"two"), ("rename2", "f", "g", RENAME_NOREPLACE), ("read", "g"),
        ("rename", "f", "g"), ("read", "g"), ("list",), ("rename", "f", "g"), ("rename", "g", "g"), ("read", "g"),
        ("rename2", "g", "f", RENAME_NOREPLACE), ("rename2", "f", "f", RENAME_NOREPLACE), ("list",), ("stat", "f"),
        ("open", "f", EXCLUSIVE | os.O_WRONLY), ("unlink", "f"), ("list",)],
    "rename of directories": [
        ("mkdir", "d"), ("mkdir", "e"), ("open", "f", CREATE | os.O_WRONLY), ("rename", "f", "d"), ("rename", "d", "f"), ("rename", "d", "e"),
        ("list",), ("stat", "e"), ("rename", "e", "d"), ("rename2", "d", "e", RENAME_NOREPLACE), ("mkdir", "d"),
        ("open", "d/x", CREATE | os.O_WRONLY), ("rename", "e", "d"), ("rename", "f", "d/f"), ("list", "d"), ("rename", "d/f", "f"), ("list",),
        ("rename", "d", "d/d"), ("unlink", "d/x"), ("rmdir", "d"), ("rmdir", "e"), ("unlink", "f"), ("list",)],
    "rename of links": [
        ("symlink", "one", "s"), ("symlink", "two", "t"), ("rename", "s", "t"), ("readlink", "t"), ("list",), ("open", "f", CREATE | os.O_WRONLY),
        ("rename", "f", "t"), ("stat", "t"), ("link", "t", "l"), ("rename", "t", "l"), ("list",), ("stat", "t"), ("unlink", "t"),
        ("unlink", "l"), ("list",)],
    "mknod": [
        ("mknod", "f", stat.S_IFREG | 0o600), ("mknod", "f", stat.S_IFREG | 0o600), ("stat", "f"), ("open", "f", EXCLUSIVE | os.O_WRONLY),
        ("unlink", "f"), ("mknod", "null", stat.S_IFCHR | 0o600, os.makedev(1, 3)), ("mknod", "p", stat.S_IFIFO | 0o600),
        ("mknod", "k", stat.S_IFSOCK | 0o600)],
    "text": [
        ("open", "f", CREATE | os.O_WRONLY), ("write", "f", b"x" * 65536), ("stat", "f"), ("read", "f"), ("append", "f", b"y"),
        ("truncate", "f", 65537), ("truncate", "f", 10), ("read", "f"), ("truncate", "f", 20), ("read", "f"), ("truncate", "f", 0),
        ("stat", "f"), ("append", "f", b"end"), ("read", "f"), ("write", "f", b"x" * 70000), ("unlink", "f")],
    "open file": [
        ("keep", "fd", "f", EXCLUSIVE | os.O_RDWR), ("write_kept", "fd", b"text"), ("sync_kept", "fd"), ("read", "f"), ("unlink", "f"),
        ("stat", "f"), ("read_kept", "fd"), ("write_kept", "fd", b"TE"), ("read_kept", "fd"), ("stat_kept", "fd"), ("truncate_kept", "fd", 1),
        ("read_kept", "fd"), ("open", "f", EXCLUSIVE | os.O_WRONLY), ("write", "f", b"new"), ("read_kept", "fd"), ("read", "f"), ("close", "fd"),
        ("read", "f"), ("unlink", "f")],
    "replaced while it is open": [
        ("keep", "old", "f", EXCLUSIVE | os.O_RDWR), ("write_kept", "old", b"old"), ("open", "g", EXCLUSIVE | os.O_WRONLY),
        ("write", "g", b"new"), ("rename", "g", "f"), ("read_kept", "old"), ("read", "f"), ("stat_kept", "old"), ("close", "old"),
        ("unlink", "f")],
    "times": [
        ("open", "f", CREATE | os.O_WRONLY), ("utime", "f", 1000000000), ("mtime", "f"), ("touch", "f"), ("utime", "f", 1000000000),
        ("write", "f", b"x"), ("is_new", "f"), ("utime", "f", 1000000000), ("chmod", "f", 0o600), ("mtime", "f"), ("link", "f", "l"),
        ("mtime", "l"), ("rename", "f", "g"), ("mtime", "g"), ("unlink", "g"), ("mtime", "l"), ("unlink", "l"), ("mkdir", "d"),
        ("is_new", "d"), ("utime", "d", 1000000000), ("mtime", "d"), ("rmdir", "d"), ("utime", "none", 1), ("symlink", "x", "s"), ("is_new", "s"),
        ("unlink", "s")],
    "modes": [
        ("open", "f", CREATE | os.O_WRONLY, 0o444), ("stat", "f"), ("chmod", "f", 0o640), ("stat", "f"), ("chmod", "none", 0o640),
        ("chown", "f", 1, 2), ("stat", "f"), ("access", "f", os.X_OK), ("mkdir", "d", 0o700), ("chmod", "d", 0o711), ("stat", "d"),
        ("link", "f", "l"), ("chmod", "l", 0o600), ("stat", "f"), ("unlink", "l"), ("unlink", "f"), ("rmdir", "d")],
    "names": [
        ("open", LONG, EXCLUSIVE | os.O_WRONLY), ("open", LONG, EXCLUSIVE | os.O_WRONLY), ("stat", LONG), ("open", LONG + "n", CREATE | os.O_WRONLY),
        ("mkdir", LONG + "n"), ("stat", LONG + "n"), ("link", LONG, LONG + "n"), ("rename", LONG, RAW), ("list",), ("read", RAW),
        ("open", RAW, EXCLUSIVE | os.O_WRONLY), ("unlink", RAW), ("mkdir", "a b"), ("mkdir", ".#x"), ("mkdir", "%2F"), ("mkdir", "lock-0000000001"),
        ("mkdir", "-"), ("mkdir", "é"), ("mkdir", "..."), ("mkdir", "a\nb"), ("list",), ("mkdir", "."), ("rmdir", "."), ("rmdir", "a b"),
        ("rmdir", ".#x"), ("rmdir", "%2F"), ("rmdir", "lock-0000000001"), ("rmdir", "-"), ("rmdir", "é"), ("rmdir", "..."), ("rmdir", "a\nb"),
        ("list",)],
}

# (sequence, number of the call in it): what it gives instead, and why. A tuple of results: any of them.
DIFFERENT = {}


def differs(sequence, call, result, why):
    """That call, all times that it is in the sequence."""
    found = [index for index, other in enumerate(SEQUENCES[sequence]) if other == call]
    assert found, (sequence, call)
    for index in found:
        DIFFERENT[sequence, index] = (result, why)


differs("mknod", ("mknod", "null", stat.S_IFCHR | 0o600, os.makedev(1, 3)), "EPERM", "a lock is no device")
differs("mknod", ("mknod", "p", stat.S_IFIFO | 0o600), "EPERM", "a lock is no pipe")
differs("mknod", ("mknod", "k", stat.S_IFSOCK | 0o600), "EPERM", "a lock is no socket")
differs("text", ("append", "f", b"y"), "EFBIG", "a text has at most 64 KiB")
differs("text", ("truncate", "f", 65537), "EFBIG", "a text has at most 64 KiB")
differs("text", ("write", "f", b"x" * 70000), "EFBIG", "a text has at most 64 KiB")


def result_of(folder, call):
    try:
        return getattr(folder, call[0])(*call[1:])
    except OSError as error:
        return errno.errorcode[error.errno]


def short(value):
    return repr(value) if len(repr(value)) < 200 else repr(value)[:80] + "..."


LOOKS = {"stat", "follow", "same", "list", "kinds", "read", "readlink", "mtime", "is_new", "access"}
OWN = {"link", "rename", "rename2"}


def run(name, calls, folders, reference):
    """Makes the calls one after the other, in turn on each of the folders, which are the same one; yields what is different."""
    own = any(call[0] in OWN for call in calls)
    for index, call in enumerate(calls):
        expected, why = result_of(reference, call), ""
        if (name, index) in DIFFERENT:
            expected, why = DIFFERENT[name, index]
            why = f" ({why})"
        turn = call[0] in LOOKS if own else index
        found = result_of(folders[turn % len(folders)], call)
        if found != expected:
            shown = " ".join(short(argument) for argument in call[1:])
            yield f"{name}: call {index + 1}, {call[0]} {shown}: found {short(found)}, expected {short(expected)}{why}"


def main(folder, reference, other=None):
    assert set(DIFFERENT) <= {(name, index) for name, calls in SEQUENCES.items() for index in range(len(calls))}
    os.umask(0o022)
    wrong = made = 0
    for name, calls in SEQUENCES.items():
        # Without the other host, or calls on descriptors, which are of one host.
        kept = any(call[0] == "keep" for call in calls)
        for number, roots in enumerate([[folder]] + ([[folder, other]] if other and not kept else [])):
            place = f"{name.replace(' ', '-')}-{number}"
            os.mkdir(os.path.join(roots[0], place))
            os.mkdir(os.path.join(reference, place))
            folders = [Folder(os.path.join(root, place)) for root in roots]
            for line in run(name, calls, folders, Folder(os.path.join(reference, place))):
                print("two hosts: " + line if number else line)
                wrong += 1
            made += len(calls)
    print(f"{made} calls, {wrong} with another result than on tmpfs")
    return 1 if wrong else 0


arguments = sys.argv[1:]
if arguments[0] == "--tmpfs":
    DIFFERENT.clear()
    del arguments[0]
sys.exit(main(*arguments))
