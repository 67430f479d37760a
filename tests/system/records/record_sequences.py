"""Seeded sequences of calls that lock, by processes that fork and are killed, each call with its outcome by
record_model.py.

A call is (slot, call, result, granted, order): the process that makes it, its name and arguments, the result ("ok",
"waits", the name of an error, or a list of what F_GETLK may find, see told()), the slots of those whose waiting calls
are granted by it, and if dlockfs breaks a cycle by queueing somebody again, the slots of those that wait after that:
by file, in their order. Most processes ask for a few bytes of two files, and often for what somebody holds who waits
for them: so many cycles are closed.
"""

import os
import random

from record_model import LAST, RECORDS, Agreed, Request, Rules

SLOTS, CALLS, BYTES, DESCRIPTORS = 5, 30, 12, 5
NAMES = "abxy"
BAD = [  # command, type, whence, start, length: what fcntl(2) refuses whatever is held
    ("set", 7, 0, 0, 1, "EINVAL"),
    ("get", 2, 0, 0, 1, "EINVAL"),
    ("get", 9, 0, 0, 1, "EINVAL"),
    ("set", 0, 5, 0, 1, "EINVAL"),
    ("set", 0, 0, -1, 1, "EINVAL"),
    ("set", 2, 0, 5, -10, "EINVAL"),
    ("get", 0, 0, 5, -10, "EINVAL"),
    ("set", 0, 0, LAST, 2, "EOVERFLOW"),
    ("get", 0, 0, LAST, 2, "EOVERFLOW"),
]


class OpenFile:
    """An open file description. It changes with the calls that are added, so only those that were added change it."""

    def __init__(self, number, file, mode, kind):
        self.number, self.file, self.mode, self.kind = number, file, mode, kind
        self.position = 0


class Sequence:
    """The calls of a seed. `agreed`: only those in which Linux and dlockfs do not differ. `hosts`: how many there
    are."""

    def __init__(self, seed, agreed, hosts):
        self.random = random.Random(f"{seed} {agreed} {hosts}")
        self.agreed, self.hosts = agreed, hosts
        self.host_of = {}  # by owner
        parts = agreed and hosts == 1
        sides = [Rules(queues, self.host_of, parts) for queues in ([False, True] if agreed else [True])]
        self.rules = Agreed(sides) if agreed else sides[0]
        self.processes = [None] * SLOTS  # by slot: (number, host) of its process, if there is one
        self.fds = [{} for _ in range(SLOTS)]  # by slot: by number: OpenFile
        self.opening = {}  # by slot: what its exclusive open will be: (fd, OpenFile)
        self.sizes = {}
        self.askers = {}  # by number of an open file: the numbers of the processes that asked for locks of it
        self.numbers = 0
        self.calls = []
        self.origin = self.random.choice([0, 0, 0, LAST - BYTES + 1])
        crowded = self.random.random() < 0.5
        for slot in range(SLOTS - 1):
            self.start(slot, slot % hosts)
            self.open(slot, "a", "rw", "record")
            if crowded:
                kind, span = self.random.choice("pppo"), (self.origin + slot * 3, self.origin + slot * 3 + 1)
                self.lock(slot, 0, kind, span, "w", True)
        for _ in range(CALLS):
            self.add()

    def number(self):
        self.numbers += 1
        return self.numbers

    def add(self):
        for _ in range(30):
            before = self.rules
            self.rules = before.copy()
            kept = [dict(fds) for fds in self.fds]
            number = len(self.calls)
            if self.call():
                if self.rules.queue.sent_back > before.queue.sent_back:
                    self.calls[number] = (*self.calls[number][:4], self.order())
                for granted in self.calls[number][3]:
                    self.opened(granted)
                return
            self.rules, self.fds = before, kept

    def ask(self, slot, file, owner, span, mode, waits):
        """The outcome of a call that locks, or None."""
        self.askers.setdefault(file.number, set()).add(self.processes[slot][0])
        return self.rules.ask(Request(slot, owner, file.number, file.file, span, mode), waits)

    def say(self, slot, call, result, granted=()):
        self.calls.append((slot, call, result, sorted(granted), {}))
        return True

    def order(self):
        order = {}
        for request in self.rules.queue.waiting:
            order.setdefault(request.file, []).append(request.slot)
        return order

    def asleep(self):
        return {request.slot for request in self.rules.waiting}

    def call(self):
        """Adds a call, or returns False: that one must not be."""
        asleep = self.asleep()
        awake = [slot for slot in range(SLOTS) if self.processes[slot] and slot not in asleep]
        free = [slot for slot in range(SLOTS) if not self.processes[slot]]
        choose = self.random.random()
        if len(free) < SLOTS and (choose < 0.05 or not awake and choose < 0.6):
            return self.kill(self.random.choice([slot for slot in range(SLOTS) if self.processes[slot]]))
        if free and (choose < 0.12 or not awake):
            if awake and self.random.random() < 0.7:
                return self.fork(self.random.choice(awake), free[0])
            return self.start(free[0], self.random.randrange(self.hosts))
        if not awake:
            return False
        wish = self.wish_that_closes_waiting(awake) if choose < 0.85 else None
        if choose < 0.6:
            wish = wish or (self.wish_that_closes(awake) if choose < 0.4 else self.wish_behind(awake))
        if wish:
            return self.lock(*wish, "w" if self.random.random() < 0.8 else "r", True)
        return self.call_of(self.random.choice(awake))

    def call_of(self, slot):
        choose, fds = self.random.random(), self.fds[slot]
        if not fds or (choose < 0.12 and len(fds) < DESCRIPTORS):
            if self.random.random() < 0.25:
                return self.open_exclusive(slot)
            mode = self.random.choice(["rw", "rw", "rw", "rw", "ro", "wo"])
            name = self.random.choice("aaaaabbx")
            return self.open(slot, name, mode, self.random.choice(["record", "flock", "both"]))
        fd = self.random.choice(sorted(fds))
        file = fds[fd]
        if choose < 0.15 and len(fds) < DESCRIPTORS:
            new = self.free_fd(slot)
            fds[new] = file
            return self.say(slot, ("dup", fd, new), "ok")
        if choose < 0.21:
            return self.close(slot, fd)
        if choose < 0.24:
            return self.seek(slot, fd, file)
        if choose < 0.26:
            command, kind, whence, start, length, error = self.random.choice(BAD)
            return self.say(slot, ("fcntl", fd, "p", command, kind, whence, start, length), error)
        if file.kind == "flock" or file.kind in ("both", "excl") and self.random.random() < 0.3:
            return self.flock(slot, fd, self.random.choice("rwwu"))
        kind, span = self.random.choice("pppo"), self.span()
        if choose < 0.37:
            return self.get(slot, fd, kind, span)
        return self.lock(slot, fd, kind, span, self.random.choice("rrwwwu"), self.random.random() < 0.7)

    #
    # Processes and descriptors
    #

    def process(self, slot):
        return ("p", self.processes[slot][0])

    def start(self, slot, host):
        self.processes[slot] = (self.number(), host)
        self.host_of[self.process(slot)] = host
        return self.say(slot, ("start", *self.processes[slot]), "ok")

    def fork(self, slot, child):
        host = self.processes[slot][1]
        self.processes[child] = (self.number(), host)
        self.host_of[self.process(child)] = host
        self.fds[child] = dict(self.fds[slot])
        return self.say(slot, ("fork", child, *self.processes[child]), "ok")

    def free_fd(self, slot):
        return next(fd for fd in range(DESCRIPTORS + 1) if fd not in self.fds[slot])

    def open_file(self, slot, name, mode, kind):
        file = OpenFile(self.number(), name, mode, kind)
        for owner in "of":
            self.host_of[owner, file.number] = self.processes[slot][1]
        return file

    def open(self, slot, name, mode, kind):
        file, fd = self.open_file(slot, name, mode, kind), self.free_fd(slot)
        self.fds[slot][fd] = file
        self.rules.names.add(name)
        return self.say(slot, ("open", fd, name, mode, None), "ok")

    def open_exclusive(self, slot):
        name = self.random.choice("xy" if self.agreed else "xya")
        waits = self.random.random() < 0.7
        file, fd = self.open_file(slot, name, "rw", "excl"), self.free_fd(slot)
        request = Request(slot, ("f", file.number), file.number, name, (0, LAST), "w")
        self.askers[file.number] = {self.processes[slot][0]}
        outcome = self.rules.open_exclusive(request, waits)
        if outcome is None:
            return False
        result, granted = outcome
        if result in ("ok", "waits"):
            self.opening[slot] = (fd, file)
        if result == "ok":
            self.opened(slot)
        call = ("open", fd, name, "rw", "waits" if waits else "tries")
        return self.say(slot, call, "EEXIST" if result == "EAGAIN" else result, granted)

    def opened(self, slot):
        """What a process waited for was granted: an exclusive open gives it a descriptor."""
        if slot in self.opening:
            fd, file = self.opening.pop(slot)
            self.fds[slot][fd] = file
            self.sizes[file.file] = 0

    def open_files(self):
        return {file for fds in self.fds for file in fds.values()}

    def closed(self, slot, fds):
        """Who is granted when these are closed: the locks of the process go first, then open files, last opened
        first. None if that is open."""
        all_granted, process, files = [], self.process(slot), []
        for fd in fds:
            files.append(self.fds[slot].pop(fd))
            all_granted.append(self.rules.close(files[-1].file, process))
        left = self.open_files()
        for file in reversed(files):
            if file not in left:
                left.add(file)
                all_granted.append(self.rules.end(file.file, file.number))
        return None if None in all_granted else sum(all_granted, [])

    def close(self, slot, fd):
        name = self.fds[slot][fd].file
        granted = self.closed(slot, [fd])
        return granted is not None and self.say(slot, ("close", fd), "ok", granted) and self.remove([name])

    def kill(self, slot):
        names = [file.file for file in self.fds[slot].values()]
        self.rules.forget(slot)
        granted = self.rules.wake()
        opening = self.opening.pop(slot, None)
        closed = None if granted is None else self.closed(slot, sorted(self.fds[slot]))
        if closed is None:
            if opening:
                self.opening[slot] = opening
            return False
        self.processes[slot] = None
        return self.say(slot, ("kill",), "ok", granted + closed) and self.remove(names)

    def remove(self, names):
        """Takes lock files that nobody has open away, as their protocol wants it where a file stays."""
        if self.agreed:
            for name in sorted(set(names) & set("xy") - {file.file for file in self.open_files()}):
                self.rules.names.discard(name)
                self.say(None, ("unlink", name), "ok")
        return True

    def seek(self, slot, fd, file):
        if self.hosts > 1 or self.random.random() < 0.6 or file.mode == "ro":
            file.position = self.random.randrange(2 * BYTES)
            return self.say(slot, ("seek", fd, file.position), "ok")
        self.sizes[file.file] = self.random.randrange(2 * BYTES)
        return self.say(slot, ("truncate", fd, self.sizes[file.file]), "ok")

    #
    # Locks
    #

    def span(self):
        start = self.random.randrange(BYTES)
        end = self.random.choice([start, start, start + 1, start + 3, start + 7, BYTES - 1])
        end = self.origin + min(end, BYTES - 1)
        return self.origin + start, LAST if self.random.random() < 0.12 else end

    def said_span(self, fd_file, span):
        """One of the ways to say it: whence, start, length."""
        start, end = span
        whence = self.random.choice([os.SEEK_SET] * 4 + [os.SEEK_CUR, os.SEEK_END])
        base = {os.SEEK_SET: 0, os.SEEK_CUR: fd_file.position, os.SEEK_END: self.sizes.get(fd_file.file, 0)}[whence]
        length = end - start + 1
        if end == LAST and (length > LAST or self.random.random() < 0.7):
            length = 0
        elif end < LAST and self.random.random() < 0.15:
            return whence, end + 1 - base, -length
        return whence, start - base, length

    def owner(self, slot, fd, kind):
        return self.process(slot) if kind == "p" else (kind, self.fds[slot][fd].number)

    def wish_that_closes(self, awake):
        """What a process asks for that holds what somebody waits for: bytes which somebody holds who waits."""
        asleep = self.rules.waiting[:]
        self.random.shuffle(asleep)
        for waiting in asleep:
            for owner in sorted(self.rules.held.get(waiting.file, {})):
                for other in asleep:
                    if wish := self.wish_for_held(awake, owner, other):
                        return wish
        return None

    def wish_that_closes_waiting(self, awake):
        """The same, for who waits because of another one that waits."""
        for owner in self.owners():
            for other in self.rules.queue.behind_waiter_of(owner):
                if wish := self.wish_for_held(awake, owner, other):
                    return wish
        return None

    def wish_for_held(self, awake, owner, other):
        """What an owner asks for that is held by the one who waits."""
        for slot, fd, asker in self.owned(awake):
            file = self.fds[slot][fd].file
            held = self.rules.held.get(file, {}).get(other.owner)
            if asker == owner != other.owner and held:
                start, end, _ = self.random.choice(held.ranges)
                return slot, fd, owner[0], (start, self.random.choice([start, end]))
        return None

    def owners(self):
        return sorted({owner for held in self.rules.held.values() for owner in held})

    def owned(self, awake):
        """The owners of record locks that somebody is who does not wait, with slot and descriptor."""
        return [(slot, fd, self.owner(slot, fd, kind)) for slot in awake for fd in self.fds[slot] for kind in RECORDS]

    def wish_behind(self, awake):
        """What a process asks for that holds something, and has to wait for one who only waits, in the way of what
        another process may ask for next that holds something, too."""
        owned = [(slot, fd, owner) for slot, fd, owner in self.owned(awake) if owner in self.owners()]
        for waiting in self.rules.waiting * 5:
            waited_for = self.rules.queue.reached(waiting)[0] & {owner for _, _, owner in owned}
            askers = [
                asker for asker in owned if waited_for - {asker[2]} and self.fds[asker[0]][asker[1]].file == waiting.file
            ]
            if askers:
                slot, fd, owner = self.random.choice(askers)
                start, end = sorted(self.random.choice([waiting.start, waiting.end, *self.span()]) for _ in "12")
                rules = self.rules.copy()
                request = Request(slot, owner, self.fds[slot][fd].number, waiting.file, (start, end), "w")
                waits = rules.ask(request, True) == ("waits", [])
                behind = [other.slot for first in waited_for - {owner} for other in rules.queue.behind_waiter_of(first)]
                if waits and slot in behind:
                    return slot, fd, owner[0], (start, end)
        return None

    def refused(self, file, mode):
        return mode == "w" and file.mode == "ro" or mode == "r" and file.mode == "wo"

    def flock(self, slot, fd, mode):
        file, owner = self.fds[slot][fd], self.owner(slot, fd, "f")
        waits = self.random.random() < 0.7
        if mode == "u":
            granted = self.rules.unlock(file.file, owner, 0, LAST)
            return granted is not None and self.say(slot, ("flock", fd, "u", True), "ok", granted)
        outcome = self.ask(slot, file, owner, (0, LAST), mode, waits)
        return outcome is not None and self.say(slot, ("flock", fd, mode, waits), *outcome)

    def lock(self, slot, fd, kind, span, mode, waits):
        file, owner = self.fds[slot][fd], self.owner(slot, fd, kind)
        call = ("fcntl", fd, kind, "wait" if waits else "set", mode, *self.said_span(file, span))
        if self.refused(file, mode):
            return self.say(slot, call, "EBADF")
        if mode == "u":
            granted = self.rules.unlock(file.file, owner, *span)
            return granted is not None and self.say(slot, call, "ok", granted)
        outcome = self.ask(slot, file, owner, span, mode, waits)
        return outcome is not None and self.say(slot, call, *outcome)

    def get(self, slot, fd, kind, span):
        file, owner, mode = self.fds[slot][fd], self.owner(slot, fd, kind), self.random.choice("rw")
        found = self.rules.test(Request(slot, owner, file.number, file.file, span, mode))
        call = ("fcntl", fd, kind, "get", mode, *self.said_span(file, span))
        return found is not None and self.say(slot, call, [self.told(*candidate) for candidate in found])

    def told(self, start, end, kind, owner):
        """What F_GETLK may find, with the kind of its owner, the host, and the processes that may be told."""
        numbers = [owner[1]] if owner[0] == "p" else sorted(self.askers[owner[1]])
        return start, end, kind, owner[0], self.host_of[owner], numbers
