#!/usr/bin/python3
"""record_calls.py FOLDER SEED CALLS: random fcntl(2) calls of four processes, strictly one after the other.

A line for each call, with its result. Who may have what is also followed here, and a result that cannot be, such
as a lock that conflicts with another one, ends the program with an error. No call waits. Where several locks are in
the way of F_GETLK any of them may be reported; the line says only that it is one of them. So the output depends on
the seed alone, whatever file system the folder is on.
"""

import errno
import fcntl
import json
import os
import random
import select
import signal
import struct
import sys

F_GETLK, F_SETLK, F_OFD_GETLK, F_OFD_SETLK = 5, 6, 36, 37
TYPES = {"r": 0, "w": 1, "u": 2}
MODES = {"ro": os.O_RDONLY, "wo": os.O_WRONLY, "rw": os.O_RDWR}
LAST = 2**63 - 1
PROCESSES = 4
FILES = 2


#
# The processes
#


def fcntl_call(fd, command, kind, whence, start, length, pid):
    lock = struct.pack("hhqqi4x", kind, whence, start, length, pid)
    return struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, lock))


class Process:
    """Serves the requests of one slot; a forked child goes on with another slot."""

    def __init__(self, slot, channels, folder):
        self.slot, self.channels, self.folder = slot, channels, folder
        self.fds = {}

    def serve(self):
        while True:
            reader, writer = self.channels[self.slot]
            name, *arguments = json.loads(os.read(reader, 65536))
            try:
                result = getattr(self, name)(*arguments)
            except OSError as error:
                result = errno.errorcode[error.errno]
            os.write(writer, json.dumps([os.getpid(), result]).encode())

    def open(self, fd, file, mode):
        self.fds[fd] = os.open(f"{self.folder}/file{file}", MODES[mode] | os.O_CREAT, 0o666)

    def dup(self, fd, new):
        self.fds[new] = os.dup(self.fds[fd])

    def close(self, fd):
        os.close(self.fds.pop(fd))

    def fork(self, slot):
        if os.fork() == 0:
            self.slot = slot
            self.serve()

    def nothing(self):
        pass

    def exit(self):
        os._exit(0)

    def seek(self, fd, offset):
        os.lseek(self.fds[fd], offset, os.SEEK_SET)

    def truncate(self, fd, size):
        os.ftruncate(self.fds[fd], size)

    def lock(self, fd, command, kind, whence, start, length, pid):
        # What SEEK_END counts from is the size that the kernel knows here.
        os.fstat(self.fds[fd])
        return fcntl_call(self.fds[fd], command, kind, whence, start, length, pid)


#
# What they may have
#


class Description:
    """An open file description."""

    def __init__(self, file, mode):
        self.file, self.mode, self.position, self.users = file, mode, 0, 0


class Ranges:
    """What one owner holds in one file: sorted [start, end, type], no overlap, neighbours merged."""

    def __init__(self):
        self.ranges = []

    def set(self, start, end, kind):
        new = []
        for s, e, k in self.ranges:
            if s < start:
                new.append([s, min(e, start - 1), k])
            if e > end:
                new.append([max(s, end + 1), e, k])
        if kind != "u":
            new.append([start, end, kind])
        self.ranges = []
        for s, e, k in sorted(new):
            if self.ranges and self.ranges[-1][2] == k and self.ranges[-1][1] + 1 == s:
                self.ranges[-1][1] = e
            else:
                self.ranges.append([s, e, k])

    def conflicts(self, start, end, kind):
        return [r for r in self.ranges if r[0] <= end and start <= r[1] and "w" in (kind, r[2])]


class Model:
    def __init__(self):
        self.sizes = [0] * FILES
        self.fds = {0: {}}  # slot: {number: Description}
        self.held = [{} for _ in range(FILES)]  # by file: {slot or Description: Ranges}

    def close(self, slot, fd):
        description = self.fds[slot].pop(fd)
        self.held[description.file].pop(slot, None)
        description.users -= 1
        if not description.users:
            self.held[description.file].pop(description, None)

    def open(self, slot, fd, description):
        description.users += 1
        self.fds[slot][fd] = description

    def span(self, description, whence, start, length):
        """The first and the last byte; None if there is no such range."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: description.position, os.SEEK_END: self.sizes[description.file]}
        if whence not in bases:
            return None
        start += bases[whence]
        end = start + length - 1 if length > 0 else LAST
        if length < 0:
            start, end = start + length, start - 1
        return (start, end) if 0 <= start <= end <= LAST else None

    def conflicts(self, file, owner, span, kind):
        return [(other, found) for other, ranges in self.held[file].items() if other is not owner
                for found in ranges.conflicts(*span, kind)]


#
# The run
#


class Run:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.model = Model()
        self.fds = 0  # numbers given so far
        self.pids = {}
        self.pidfds = {}
        pipes = [(os.pipe(), os.pipe()) for _ in range(PROCESSES)]
        self.requests = [request[1] for request, _ in pipes]
        self.answers = [answer[0] for _, answer in pipes]
        channels = [(request[0], answer[1]) for request, answer in pipes]
        for file in range(FILES):
            with open(f"{folder}/file{file}", "w", encoding="ascii"):
                pass  # empty, whatever was there
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0:
            Process(0, channels, folder).serve()
        self.greet(0)

    def greet(self, slot):
        """Learns which process serves a slot."""
        pid, _ = self.ask(slot, "nothing")
        self.pids[slot] = pid
        self.pidfds[slot] = os.pidfd_open(pid)

    def ask(self, slot, *request):
        os.write(self.requests[slot], json.dumps(request).encode())
        if not select.select([self.answers[slot]], [], [], 90)[0]:
            sys.exit(f"no answer to {request} within 90 s")
        return json.loads(os.read(self.answers[slot], 65536))

    def say(self, slot, what, result):
        print(slot, what, "ok" if result is None else result)

    def end(self):
        for pidfd in self.pidfds.values():
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        for pidfd in self.pidfds.values():
            if not select.select([pidfd], [], [], 90)[0]:
                sys.exit("a process does not end")

    def exit(self, slot):
        os.write(self.requests[slot], json.dumps(["exit"]).encode())
        if not select.select([self.pidfds[slot]], [], [], 90)[0]:
            sys.exit("a process does not end")
        os.close(self.pidfds.pop(slot))
        for fd in list(self.model.fds[slot]):
            self.model.close(slot, fd)
        del self.model.fds[slot]

    def range(self):
        """whence, start and length; most of them among the same few bytes."""
        choose = self.random.random()
        start, length = self.random.randrange(40), self.random.randrange(1, 12)
        if choose < 0.55:
            return os.SEEK_SET, start, length
        if choose < 0.65:
            return os.SEEK_SET, start, 0
        if choose < 0.72:
            return os.SEEK_SET, start, -self.random.randrange(1, 15)
        if choose < 0.80:
            return os.SEEK_CUR, start - 20, self.random.choice([length, -length, 0])
        if choose < 0.88:
            return os.SEEK_END, start - 20, self.random.choice([length, -length, 0])
        edges = [LAST, LAST - 1, LAST - 2, LAST - 5, LAST - 9, 0, 1]
        lengths = [0, 1, 2, 3, -1, -2, LAST, LAST - 1, -LAST, -LAST - 1]
        return os.SEEK_SET, self.random.choice(edges), self.random.choice(lengths)

    def step(self):
        model = self.model
        slot = self.random.choice(sorted(model.fds))
        fds = model.fds[slot]
        fd = self.random.choice(sorted(fds)) if fds else None
        choose = self.random.random()
        if fd is None or (choose < 0.05 and len(fds) < 5):
            file, mode = self.random.randrange(FILES) if fds else 0, self.random.choice(["rw", "rw", "rw", "ro", "wo"])
            self.fds += 1
            self.say(slot, f"open {self.fds} file{file} {mode}", self.ask(slot, "open", self.fds, file, mode)[1])
            model.open(slot, self.fds, Description(file, mode))
        elif choose < 0.08 and len(fds) < 5:
            self.fds += 1
            self.say(slot, f"dup {fd} {self.fds}", self.ask(slot, "dup", fd, self.fds)[1])
            model.open(slot, self.fds, fds[fd])
        elif choose < 0.12:
            self.say(slot, f"close {fd}", self.ask(slot, "close", fd)[1])
            model.close(slot, fd)
        elif choose < 0.145:
            free = [number for number in range(PROCESSES) if number not in model.fds]
            if not free:
                return
            self.say(slot, f"fork {free[0]}", self.ask(slot, "fork", free[0])[1])
            model.fds[free[0]] = {}
            for number, description in fds.items():
                model.open(free[0], number, description)
            self.greet(free[0])
        elif choose < 0.16:
            if len(model.fds) > 1:
                self.exit(slot)
                self.say(slot, "exit", None)
        elif choose < 0.18:
            fds[fd].position = self.random.randrange(40)
            self.say(slot, f"seek {fd} {fds[fd].position}", self.ask(slot, "seek", fd, fds[fd].position)[1])
        elif choose < 0.20:
            size = self.random.randrange(40)
            result = self.ask(slot, "truncate", fd, size)[1]
            self.say(slot, f"truncate {fd} {size}", result)
            if result is None:
                model.sizes[fds[fd].file] = size
        elif choose < 0.22:
            self.bad(slot, fd)
        else:
            self.lock(slot, fd, choose)

    def bad(self, slot, fd):
        """What fcntl(2) refuses whatever is held."""
        command, kind, whence, pid = self.random.choice([
            (F_SETLK, 7, 0, 0), (F_GETLK, 2, 0, 0), (F_GETLK, 9, 0, 0), (F_SETLK, 0, 5, 0), (F_OFD_SETLK, 0, 0, 1),
            (F_OFD_GETLK, 0, 0, 1), (F_SETLK, -1, 0, 0), (F_GETLK, 1, -1, 0),
        ])
        result = self.ask(slot, "lock", fd, command, kind, whence, 0, 1, pid)[1]
        self.say(slot, f"bad {fd} {command} {kind} {whence} {pid}", result)
        if result not in ("EINVAL", "EBADF"):
            sys.exit(f"that should have been refused: {result}")

    def lock(self, slot, fd, choose):
        model, description = self.model, self.model.fds[slot][fd]
        get, ofd = choose > 0.75, self.random.random() < 0.35
        kind = self.random.choice("rw" if get else "rrwwu")
        whence, start, length = self.range()
        owner = description if ofd else slot
        command = {(False, False): F_SETLK, (False, True): F_OFD_SETLK, (True, False): F_GETLK, (True, True): F_OFD_GETLK}
        call = f"{'ofd-' if ofd else ''}{'get-' if get else ''}{kind} {fd} {start}+{length}@{whence}"
        span = model.span(description, whence, start, length)
        result = self.ask(slot, "lock", fd, command[get, ofd], TYPES[kind], whence, start, length, 0)[1]
        conflicts = span and kind != "u" and model.conflicts(description.file, owner, span, kind)
        if get:
            self.say(slot, call, self.check_found(result, conflicts, ofd))
            return
        done = not isinstance(result, str)
        self.say(slot, call, None if done else result)
        if done and (span is None or conflicts):
            sys.exit(f"should have failed: range {span}, conflicts {conflicts}")
        if result == "EAGAIN" and not conflicts:
            sys.exit(f"nothing is in the way of {span}")
        if done:
            model.held[description.file].setdefault(owner, Ranges()).set(*span, kind)

    def check_found(self, result, conflicts, ofd):
        """What F_GETLK found, as text that is the same on each file system, if it can be."""
        if isinstance(result, str):
            return result
        number, whence, start, length, pid = result
        if number == TYPES["u"]:
            if conflicts:
                sys.exit(f"not found: {conflicts}")
            return "free"
        found = [start, start + length - 1 if length else LAST, "rw"[number]]
        for owner, candidate in conflicts or ():
            if candidate != found or whence != os.SEEK_SET:
                continue
            if isinstance(owner, Description) or ofd:
                break  # whose pid is -1 for the kernel's own locks, who set it elsewhere
            if pid == self.pids[owner]:
                break
        else:
            sys.exit(f"found {found} of {pid}, should be one of {conflicts}")
        return f"found {found}" if len(conflicts) == 1 else "found one of them"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    run = Run(sys.argv[1], int(sys.argv[2]))
    try:
        for _ in range(int(sys.argv[3])):
            run.step()
    finally:
        run.end()


if __name__ == "__main__":
    main()
