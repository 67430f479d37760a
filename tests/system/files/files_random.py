#!/usr/bin/python3
"""Makes and removes the same few names on several hosts, at random: files_random.py STATE SEED PROCESSES STOP FOLDER...

So many processes for each folder (a directory of style = file) make a name of a few, by a call drawn at random that makes it once,
and take it away in one of several ways, until the file STOP exists. STATE is a local folder: who has made a name has a local lock as
well, and who does not get that looks whether the other one still has the name, on its host. Prints a line

two NAME ...      for a name that two have at a time
odd CALL ERROR    for an error that no fault explains
lost NAME HOST    for a name that is gone, or another one, while it is held
left NAME HOST    for a name whose removal failed: it may still be there, and nobody makes it again;
                   or one that a directory may have been renamed to
done COUNTS       at the end: how often each call had each result
"""

import collections
import ctypes
import errno
import fcntl
import os
import random
import select
import sys
import time

state, seed, processes, stop, folders = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
libc = ctypes.CDLL(None, use_errno=True)
NAMES = [b"lock", b"\xff\xfe.lock", b"a%2Fb", b"x-0000000001", b"n" * 240, b"\xc3\xa4" * 100]
AT_FDCWD, RENAME_NOREPLACE = -100, 1
# The name has gone with its session; or another session has one there, of another kind maybe, even this host's former one, whose
# names stand until the servers have noticed its end.
GONE = (errno.ENOENT, errno.EPERM, errno.EISDIR, errno.ENOTDIR)
counts = collections.Counter()


def say(*words):
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def rename_new(old, new):
    if libc.renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_NOREPLACE) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Lost(Exception):
    pass


class Worker:
    def __init__(self, folder, number):
        self.folder = os.fsencode(folder)
        self.host = os.path.basename(os.path.dirname(folder))
        self.random = random.Random(f"{seed} {folder} {number}")
        self.serial = 0

    def unique(self):
        self.serial += 1
        return f"t.{self.host}.{os.getpid()}.{self.serial}".encode()

    def call(self, name, function, *arguments, expected=()):
        """Returns 0 or the errno."""
        try:
            function(*arguments)
            error = 0
        except OSError as failure:
            error = failure.errno
        counts[f"{name}={errno.errorcode.get(error, 'ok')}"] += 1
        if error not in (0, errno.EIO, *expected):
            say("odd", name, errno.errorcode[error], *arguments)
        return error

    def generation(self, index):
        try:
            return os.stat(f"{state}/generation{index}").st_size
        except FileNotFoundError:
            return 0

    def give_up(self, index, path):
        with open(f"{state}/generation{index}", "ab") as file:
            file.write(b".")
        self.left(path)

    def left(self, path):
        say("left", os.path.basename(path), self.host)

    def excl(self, path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = fd

    def make_temporary(self):
        path = self.folder + b"/" + self.unique()
        error = self.call("temporary", self.excl, path)
        if error == 0 and self.random.random() < 0.3:
            self.call("write", os.write, self.fd, b"text\n")
        return path if error == 0 else None

    def remove_temporary(self, path):
        if self.call("remove temporary", os.unlink, path, expected=GONE) == errno.EIO:
            self.left(path)

    def make(self, path, how):
        """Returns the errno."""
        taken = (errno.EEXIST,)
        if how == "mkdir":
            return self.call(how, os.mkdir, path, expected=taken)
        if how == "symlink":
            return self.call(how, os.symlink, self.unique(), path, expected=taken)
        if how == "excl":
            return self.call(how, self.excl, path, expected=taken)
        if how == "move":
            return self.move(path)
        temporary = self.make_temporary()
        if temporary is None:
            return errno.EIO
        call = {"link": os.link, "rename": rename_new}[how]
        error = self.call(how, call, temporary, path, expected=(errno.EEXIST, *GONE))
        if how == "link" or error == errno.EEXIST:
            if how == "link" and error == 0 and self.random.random() < 0.5:
                self.second = temporary
            else:
                self.remove_temporary(temporary)
        elif error != 0:
            self.left(temporary)
        return error

    def move(self, path):
        """A directory with a file in it gets the name."""
        temporary = self.folder + b"/" + self.unique()
        error = self.call("temporary directory", os.mkdir, temporary)
        if error == 0:
            error = self.call("inner", self.excl, temporary + b"/inner", expected=GONE)
        if error == 0:
            error = self.call("move", os.rename, temporary, path, expected=(errno.ENOTEMPTY, errno.EEXIST, *GONE))
        if error == 0:
            return 0
        if error == errno.EIO or self.remove_directory(temporary) == errno.EIO:
            self.left(temporary)
        return error

    def remove_directory(self, path):
        """Of one that the session's end has emptied, and that is made anew, nobody knows here."""
        error = self.call("unlink inner", os.unlink, path + b"/inner", expected=GONE)
        if error == errno.EIO:
            return error
        return self.call("rmdir", os.rmdir, path, expected=(*GONE, errno.ENOTEMPTY))

    def check(self, path, number):
        """It is there, and nobody else's."""
        try:
            if os.lstat(path).st_ino == number:
                return
        except OSError as error:
            counts["check=" + errno.errorcode[error.errno]] += 1
            if error.errno not in (errno.ENOENT, errno.EIO):
                say("odd", "check", error)
            if error.errno != errno.ENOENT:
                return
        raise Lost

    def remove(self, path, how):
        if how == "mkdir":
            # Another one of this host may have moved a directory over this one, which is empty.
            return self.call("rmdir", os.rmdir, path, expected=(*GONE, errno.ENOTEMPTY))
        if how == "move":
            return self.remove_directory(path)
        if self.second is not None and self.random.random() < 0.3:
            # Over the other name of the same content: nothing happens.
            self.call("rename linked", os.rename, path, self.second, expected=GONE)
        if self.random.random() < 0.3:
            aside = self.folder + b"/" + self.unique()
            over = how != "symlink" and self.random.random() < 0.5
            if over and self.call("aside", self.excl, aside) != 0:
                return errno.EIO
            error = self.call("rename aside", os.rename, path, aside, expected=GONE)
            if error == 0:
                self.remove_temporary(aside)
            elif over or error == errno.EIO:
                self.left(aside)
            return error
        return self.call("unlink", os.unlink, path, expected=GONE)

    def take_turn(self):
        index = self.random.randrange(len(NAMES))
        generation = self.generation(index)
        name = NAMES[index] + b".%d" % generation
        path = self.folder + b"/" + name
        how = self.random.choice(["mkdir", "symlink", "excl", "link", "rename", "move"])
        self.fd, self.second = -1, None
        error = self.make(path, how)
        if error == 0:
            self.hold(index, generation, path, how)
        elif error == errno.EIO and how == "move":
            self.give_up(index, path)  # it may be there, and is not taken back
        if self.second is not None:
            self.remove_temporary(self.second)
        if self.fd >= 0:
            os.close(self.fd)

    def hold(self, index, generation, path, how):
        with open(f"{state}/{index}.{generation}", "a+b", buffering=0) as local:
            try:
                number = os.lstat(path).st_ino
            except OSError:
                self.give_up(index, path)
                return
            try:
                fcntl.flock(local, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.look_at_other(local, path)
                fcntl.flock(local, fcntl.LOCK_EX)
            local.truncate(0)
            os.write(local.fileno(), b"%d %s" % (number, path))
            try:
                self.work(path, number)
                self.check(path, number)
            except Lost:
                say("lost", os.path.basename(path), self.host)
                return
        error = self.remove(path, how)
        if error == errno.EIO:
            self.give_up(index, path)
        elif error != 0:
            say("lost", os.path.basename(path), self.host)

    def work(self, path, number):
        for _ in range(self.random.randrange(4)):
            time.sleep(self.random.uniform(0, 0.01))
            self.check(path, number)
            if self.fd >= 0 and self.random.random() < 0.3:
                if self.call("fsync", os.fsync, self.fd) != 0:
                    return
            if self.fd >= 0 and self.random.random() < 0.3:
                self.call("write", os.pwrite, self.fd, b"x" * self.random.randrange(100), 0)

    def look_at_other(self, local, path):
        """Another one has not given its local lock up: it must have lost the name, and its host must know."""
        os.lseek(local.fileno(), 0, os.SEEK_SET)
        words = os.read(local.fileno(), 5000).split(b" ", 1)
        counts["met"] += 1
        if len(words) < 2:
            return
        number, other = int(words[0]), words[1]
        try:
            if os.lstat(other).st_ino == number:
                say("two", path, "and", other)
        except OSError:
            pass


def run(folder, number):
    worker = Worker(folder, number)
    while not os.path.exists(stop):
        worker.take_turn()
    say("done", dict(sorted(counts.items())))


for folder in folders:
    for number in range(processes):
        if os.fork() == 0:
            run(folder, number)
            os._exit(0)
for _ in range(len(folders) * processes):
    os.wait()
