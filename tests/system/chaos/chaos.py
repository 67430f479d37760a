#!/usr/bin/python3
"""Chaos: who takes the locks, what goes wrong meanwhile, and whether exclusion held. See test-chaos.sh.

chaos.py plan SEED SECONDS [SERVER-FAULT...]
        prints what is done to hosts and servers, and when: lines "MILLISECONDS begin|end FAULT TARGET". A host's target is
        its name, a server's a number: which one of those that the fault is for. All faults come, however short it is; of the
        servers only these, if any are named.
chaos.py plan-restarts SEED SECONDS FAULT...
        the same of nothing but these faults of daemons, after each of which another one goes on at once.
chaos.py work SEED PROCESSES RECORDS FAULTS CALM MOUNT...
        so many processes on each mount take locks of all kinds on a few names, and hold them for a while. As long as fsync,
        write, or the token say that the handle is not fenced, the lock is held. Some processes are killed and replaced,
        some get signals; FAULTS tells of it. Once the file CALM exists, each has to get each name alone, and ends.
chaos.py check RECORDS FAULTS LOST [SERVER-FAULT...]
        prints what was seen, and ends with an error if two ever held what conflicts, if a token did not grow from one to
        the next, or if there was too little to see: few grants, no LOST sessions, or a fault that never came. Where faults of
        the servers are named, as for Redis, a host has no session while it holds nothing, so nothing need be lost.

chaos.py check-unnoticed RECORDS FAULTS LOST
        the same after plan-restarts, or other faults that nobody may notice: nobody may have lost anything.

RECORDS is a folder. A process writes down each call before it is made, when it returns, and at each proof that what it
was granted is still held; so a process that is killed, or whose daemon is, leaves all that is known.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import functools
import glob
import heapq
import itertools
import mmap
import os
import random
import signal
import struct
import sys
import time

NAMES = ("anvil", "brook", "cedar", "delta", "ember", "fjord")
# Whose claims go on from caller to caller on a host, or are kept: only while there are no record locks.
SELDOM_RANGES = ("ember", "fjord")
OWN = ("grove-A", "grove-B", "grove-C")  # a host's own: one of its workers holds it nearly all the time
BYTES = 32  # of a file, that ranges are taken of; flock and exclusive open take all of them
PATIENCE = 120  # seconds for everybody's end once the faults are over, and for a mount to come back

# How long each fault lasts, in seconds. The session timeout is 3 s, the lease 1.8 s, and a follower that is cut off
# serves on for 5 s, as does a leader: so each fault comes both with and without the loss of sessions.
HOST_FAULTS = {
    "daemon-kill": (0.2, 4),
    "daemon-crash": (0.1, 0.5),
    "daemon-pause": (0.1, 1.5),
    "daemon-freeze": (3.5, 6),
    "daemon-restart": (0.1, 0.5),
    "link-cut": (0.3, 5),
    "link-refuse": (0.3, 5),
}
SERVER_FAULTS = {
    "server-kill": (0.5, 3),
    "server-pause": (0.5, 5),
    "follower-cut": (3.5, 7),
    "leader-kill": (0.5, 3),
    "leader-cut": (2, 8),
    "quorum-loss": (0.5, 4),
}
WORKER_FAULTS = ("worker-kill", "worker-signal")
LEASE_REVOKE = "lease-revoke"  # by hand: see Revocation
SESSION_TIMEOUT = 3  # of the hosts: server-chaos.sh
CLOCK_STEP = 0.01  # of /proc/uptime, by which FAULTS has its times, rounded down
SESSION_ENDS = "link-cut"  # the first one lasts as long as one can: so a session is sure to end

KINDS = ("flock", "open", "range", "ofd")
SHARED, EXCLUSIVE = 0, 1
# How a hold ended: not at all that anybody knew of, as asked, with EIO, or with the mount.
UNKNOWN, RELEASED, FENCED, UNMOUNTED = range(4)

# What a call may fail with that does not wait, or does; and what a handle says whose daemon was killed.
REFUSED = {errno.EAGAIN, errno.EEXIST, errno.ENOLCK, errno.EINTR}  # it waits for an answer of the servers
GIVEN_UP = {errno.EINTR}
DEAD = {errno.ENOTCONN, errno.ECONNABORTED}

F_OFD_SETLK, F_OFD_SETLKW = 37, 38
DLOCKFS_IOC_TOKEN = 0x8008DF01
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def name_of(number):
    if number == errno.EDEADLK:  # it has two names
        return "EDEADLK"
    return errno.errorcode[number] if number else "0"


def now():
    """CLOCK_MONOTONIC: one clock for all processes, and nobody sets it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def system_call(function, *arguments):
    """Returns the result and the errno or 0; does not repeat an interrupted call, as Python's own functions do."""
    result = function(*arguments)
    return result, ctypes.get_errno() if result < 0 else 0


#
# What goes wrong
#


def deck(faults, choice):
    """All of them in random order, again and again."""
    while True:
        yield from choice.sample(sorted(faults), len(faults))


def lane_events(targets, faults, gaps, seconds, choice):
    """Events of faults that come one after the other to each target, and at the same time to several."""
    draw = deck(faults, choice)
    lanes = [(choice.uniform(*gaps), target) for target in targets]
    heapq.heapify(lanes)
    drawn = 0
    while lanes[0][0] < seconds or drawn < len(faults):
        begin, target = heapq.heappop(lanes)
        fault = next(draw)
        drawn += 1
        length = choice.uniform(*faults[fault])
        if fault == SESSION_ENDS and drawn <= len(faults):
            length = faults[fault][1]
        end = begin + length
        name = target or str(choice.randrange(2 if fault == "follower-cut" else 3))
        yield begin, "begin", fault, name
        yield end, "end", fault, name
        heapq.heappush(lanes, (end + choice.uniform(*gaps), target))


def plan(seed, seconds, *server_faults):
    choice = random.Random(f"{seed} plan")
    events = list(lane_events(("A", "B", "C"), HOST_FAULTS, (2, 12), float(seconds), choice))
    faults = {fault: SERVER_FAULTS[fault] for fault in server_faults or SERVER_FAULTS}
    events += lane_events(("",), faults, (3, 8), float(seconds), choice)
    for at, what, fault, target in sorted(events):
        print(int(at * 1000), what, fault, target)


def plan_restarts(seed, seconds, *faults):
    """Nothing but daemons in whose place others go on, on all hosts."""
    choice = random.Random(f"{seed} restarts")
    lengths = {fault: (0.05, 0.2) for fault in faults}
    events = lane_events(("A", "B", "C"), lengths, (0.1, 0.6), float(seconds), choice)
    for at, what, fault, target in sorted(events):
        print(int(at * 1000), what, fault, target)


#
# What is written down
#


class Record:
    """A call that asks for a lock, and what became of it. Times are nanoseconds, 0 for never. The latest proof of all began at
    `proven`, the latest one that the servers gave at `served`."""

    FORMAT = struct.Struct("<7q5h6x")
    FIELDS = ("asked", "returned", "proven", "served", "token", "other_token", "revived", "kind_mode", "start", "end", "error", "fate")

    def __init__(self, values, source=""):
        for field, value in zip(self.FIELDS, values):
            setattr(self, field, value)
        self.source = source

    def pack(self):
        return self.FORMAT.pack(*(getattr(self, field) for field in self.FIELDS))

    @property
    def kind(self):
        return KINDS[self.kind_mode // 2]

    @property
    def mode(self):
        return self.kind_mode % 2

    @property
    def host(self):
        """The source is NAME.WORKER, and a worker a host with a number."""
        return self.source.rpartition(".")[2].rstrip("0123456789")

    @property
    def granted(self):
        return self.returned and not self.error

    def __str__(self):
        fate = ("not known to have ended", "released", "fenced", "lost with the mount")[self.fate]
        return (
            f"{self.source}: {self.kind} {'exclusive' if self.mode else 'shared'} {self.start}-{self.end}, "
            f"asked {self.asked / 1e9:.6f}, returned {self.returned / 1e9:.6f}, proven {self.proven / 1e9:.6f} "
            f"(by the servers {self.served / 1e9:.6f}), {fate}, token {self.token:#x}"
        )


class Journal:
    """The records of one worker, a file for each name. The one who replaces a worker goes on with them."""

    def __init__(self, folder, worker):
        self.files = {name: os.open(f"{folder}/{name}.{worker}", os.O_RDWR | os.O_CREAT) for name in NAMES + OWN}

    def begin(self, name, kind, mode, start, end):
        record = Record((now(), 0, 0, 0, 0, 0, 0, KINDS.index(kind) * 2 + mode, start, end, 0, UNKNOWN), name)
        record.file = self.files[name]
        record.offset = -(-os.fstat(record.file).st_size // Record.FORMAT.size) * Record.FORMAT.size
        self.save(record)
        return record

    def save(self, record):
        os.pwrite(record.file, record.pack(), record.offset)


def read_records(folder, name):
    for path in glob.glob(f"{glob.escape(folder)}/{name}.*"):
        with open(path, "rb") as file:
            while len(chunk := file.read(Record.FORMAT.size)) == Record.FORMAT.size:
                yield Record(Record.FORMAT.unpack(chunk), os.path.basename(path))


#
# Who takes the locks
#


class Unmounted(Exception):
    """The daemon was killed."""


class Fenced(Exception):
    """The lock is lost."""


class Worker:
    def __init__(self, mount, name, seed, records, calm, tell_holding):
        self.mount = mount
        self.name = name
        self.calm = calm
        self.tell_holding = tell_holding
        self.random = random.Random(seed)
        self.journal = Journal(records, name)
        # What the mount hides, while there is no mount.
        self.hidden_device = os.stat(os.path.dirname(mount)).st_dev
        self.folder = None

    def fail(self, message):
        sys.exit(f"{now() / 1e9:.6f} {self.name}: {message}")

    def reopen(self):
        """Files are opened below a handle of the mount, so never in the folder that it hides."""
        if self.folder is not None:
            os.close(self.folder)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.folder = os.open(self.mount, os.O_RDONLY | os.O_DIRECTORY)
                if os.fstat(self.folder).st_dev != self.hidden_device:
                    return
                os.close(self.folder)
                self.folder = None
            time.sleep(0.05)
        self.fail("the mount does not come back")

    def open(self, name, flags=0):
        flags |= os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        return system_call(libc.openat, self.folder, name.encode(), flags, 0o666)

    def range(self, file, ofd, wait, kind, start, end):
        lock = ctypes.create_string_buffer(struct.pack("hhqqi4x", kind, 0, start, end - start + 1, 0), 32)
        command = (F_OFD_SETLKW if wait else F_OFD_SETLK) if ofd else fcntl.F_SETLKW if wait else fcntl.F_SETLK
        return system_call(libc.fcntl, file, command, lock)[1]

    def ask(self, file, name, kind, mode, wait, start, end, patience=None):
        """Returns the file, which exclusive open makes, and the record of the call."""
        if patience is not None:
            signal.setitimer(signal.ITIMER_REAL, patience, 0.2)  # again and again: the first may come before the call
        record = self.journal.begin(name, kind, mode, start, end)
        if kind == "open":
            result, error = self.open(name, os.O_EXCL | (0 if wait else os.O_NONBLOCK))
            file = None if error else result
        elif kind == "flock":
            operation = (fcntl.LOCK_SH, fcntl.LOCK_EX)[mode] | (0 if wait else fcntl.LOCK_NB)
            error = system_call(libc.flock, file, operation)[1]
        else:
            error = self.range(file, kind == "ofd", wait, (fcntl.F_RDLCK, fcntl.F_WRLCK)[mode], start, end)
        record.returned, record.error = now(), error
        self.journal.save(record)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return file, record

    def check(self, file, records, proof):
        """Whether the handle says that it is not fenced. If it has a token, that is of the last of the records."""
        asked = now()
        token = ctypes.c_uint64()
        if proof == "token":
            error = system_call(libc.ioctl, file, ctypes.c_ulong(DLOCKFS_IOC_TOKEN), ctypes.byref(token))[1]
        else:
            error = self.probe(file, proof)
        if error == errno.EINTR:
            return
        if error in DEAD:
            raise Unmounted
        if error == errno.EIO:
            raise Fenced
        if error:
            self.fail(f"{proof} gave {name_of(error)} for {records[-1]}")
        if token.value:
            last = records[-1]
            if not last.token:
                last.token = token.value
            elif token.value != last.token:
                last.other_token = token.value
        for record in records:
            record.proven = asked
            if proof != "write":
                record.served = asked
            self.journal.save(record)

    def probe(self, file, proof):
        """fsync asks the servers, write only this host: that is quick, so it finds any time between two holders."""
        if proof == "fsync":
            return system_call(libc.fsync, file)[1]
        return system_call(libc.pwrite, file, b"mine", 4, 0)[1]

    def keep(self, file, records, seconds):
        """Asks all the time, at least at the beginning and at the end."""
        stop = now() + seconds * 1e9
        proof = self.random.choice(("fsync", "write", "write"))
        self.check(file, records, "token" if self.random.random() < 0.7 else proof)
        while now() < stop:
            time.sleep(min(seconds / 4, 0.03))
            self.check(file, records, "token" if self.random.random() < 0.02 else proof)
        self.check(file, records, "token" if self.random.random() < 0.1 else proof)

    def fenced_for_good(self, file, record):
        for proof in ("write", "fsync", "write"):
            time.sleep(self.random.uniform(0, 0.2))
            asked = now()
            if not self.probe(file, proof):
                record.revived = asked

    def release(self, file, kind):
        """Asks to be released, or leaves it to the close."""
        if self.random.random() < 0.5:
            return
        if kind in ("range", "ofd"):
            error = self.range(file, kind == "ofd", False, fcntl.F_UNLCK, 0, BYTES - 1)
        else:
            error = system_call(libc.flock, file, fcntl.LOCK_UN)[1]
        if error in DEAD:
            raise Unmounted
        if error not in (0, errno.EIO, errno.EINTR):
            self.fail(f"the release of {kind} gave {name_of(error)}")

    def hold_on(self, file, records, seconds, name, kind, mode, more):
        """With what was granted; and with more of the file through the same handle, if it can be had at once."""
        self.keep(file, records, seconds)
        if more is None:
            return
        _, second = self.ask(file, name, kind, mode, False, *more)
        if second.error == errno.EIO:
            raise Fenced
        if second.error in DEAD:
            raise Unmounted
        if second.granted:
            records.append(second)
            self.keep(file, records, seconds)
        elif second.error not in REFUSED:
            self.fail(f"{second} gave {name_of(second.error)}")

    def hold(self, name, kind, mode, wait, start, end, seconds, patience=None, more=None):
        """Returns whether it was granted and held until the end."""
        file, records = None, []
        try:
            if kind != "open":
                result, error = self.open(name)
                if error in DEAD:
                    raise Unmounted
                if error:
                    self.fail(f"open {name} gave {name_of(error)}")
                file = result
            file, record = self.ask(file, name, kind, mode, wait, start, end, patience)
            if record.error in DEAD:
                raise Unmounted
            if record.error:
                if record.error == errno.EIO and (file is None or self.probe(file, "write") == errno.EIO):
                    return False  # granted, and lost before that was told (handles/answers.h)
                if record.error not in (GIVEN_UP if wait else REFUSED):
                    self.fail(f"{record} gave {name_of(record.error)}, wait {wait}")
                return False
            records.append(record)
            self.tell_holding(True)
            self.hold_on(file, records, seconds, name, kind, mode, more)
            fate = RELEASED
            self.release(file, kind)
        except Unmounted:
            fate = UNMOUNTED
        except Fenced:
            fate = FENCED
            self.fenced_for_good(file, records[0])
        finally:
            self.tell_holding(False)
            if file is not None:
                with contextlib.suppress(OSError):  # it is closed all the same
                    os.close(file)
        for record in records:
            record.fate = fate
            self.journal.save(record)
        if fate == UNMOUNTED:
            self.reopen()
        return fate == RELEASED

    def hold_some(self):
        choice = self.random
        name = choice.choice(NAMES)
        kind = choice.choice(KINDS[:2] if name in SELDOM_RANGES and choice.random() < 0.99 else KINDS)
        mode = EXCLUSIVE if kind == "open" else choice.choice((SHARED, EXCLUSIVE, EXCLUSIVE))
        start, end, more = 0, BYTES - 1, None
        if kind in ("range", "ofd"):
            start = choice.randrange(BYTES)
            end = min(BYTES - 1, start + choice.randrange(8))
            if choice.random() < 0.3:
                more = (0, start - 1) if start > choice.randrange(BYTES) else (end + 1, BYTES - 1)
                more = more if more[0] <= more[1] else None
        wait = choice.random() < 0.8
        patience = choice.uniform(0.01, 1) if wait and choice.random() < 0.1 else None
        # Most are short, so that there are many; some as long as it takes to lose a session meanwhile.
        seconds = choice.choices((choice.uniform(0, 0.06), choice.uniform(0.1, 0.5), choice.uniform(2, 5)), (89, 8, 3))[0]
        self.hold(name, kind, mode, wait, start, end, seconds, patience, more)
        time.sleep(choice.uniform(0, 0.1))

    def hold_own(self):
        """So that a host that loses its session always loses a lock."""
        self.hold(f"grove-{self.name[:-1]}", "flock", EXCLUSIVE, True, 0, BYTES - 1, 2)

    def work(self):
        self.reopen()
        while not os.path.exists(self.calm):
            if self.name[1:] == "0":
                self.hold_own()
            else:
                self.hold_some()
        for name in self.random.sample(NAMES, len(NAMES)):
            while not self.hold(name, self.random.choice(KINDS), EXCLUSIVE, True, 0, BYTES - 1, 0):
                pass


class Supervisor:
    """Starts the workers, is not kind to them, and sees that each comes to its end."""

    def __init__(self, seed, number, records, faults, calm, mounts):
        self.seed = seed
        self.random = random.Random(f"{seed} workers")
        self.records = records
        self.faults = os.open(faults, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.calm = calm
        self.running = {}  # by process id: the mount, the number, and the how many-eth with it
        self.killed = set()
        self.is_holders_turn = True  # every other one that is killed holds a lock then: as soon as there is one
        self.places = {worker: place for place, worker in enumerate(itertools.product(mounts, range(number)))}
        self.holding = mmap.mmap(-1, len(self.places))  # a byte for each worker, written by it
        # Before the workers are there, for a signal may come to one as soon as it is.
        for signal_number, interrupts in ((signal.SIGALRM, True), (signal.SIGUSR1, True), (signal.SIGUSR2, False)):
            signal.signal(signal_number, lambda *_: None)
            signal.siginterrupt(signal_number, interrupts)
        for index in range(number):
            for mount in mounts:
                self.start(mount, index, 0)

    def start(self, mount, index, generation):
        parent = os.getpid()
        tell_holding = functools.partial(self.holding.__setitem__, self.places[mount, index])
        tell_holding(False)
        child = os.fork()
        if child == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            name = f"{os.path.basename(mount)}{index}"
            status = 1
            try:
                seed = f"{self.seed} {name} {generation}"
                Worker(mount, name, seed, self.records, self.calm, tell_holding).work()
                status = 0
            except SystemExit as end:
                print(end.code, file=sys.stderr, flush=True)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)
        self.running[child] = mount, index, generation

    def tell(self, fault, child):
        mount, index, _ = self.running[child]
        os.write(self.faults, f"{now() / 1e9:.3f} begin {fault} {os.path.basename(mount)}{index}\n".encode())

    def reap(self, replace):
        while self.running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            mount, index, generation = self.running.pop(child)
            if child in self.killed and os.WIFSIGNALED(status):
                self.killed.remove(child)
                # Also in the end: somebody has to show that what the dead one had is free.
                self.start(mount, index, generation + 1)
            elif status or replace:
                sys.exit(f"worker {os.path.basename(mount)}{index} ended ({os.waitstatus_to_exitcode(status)})")

    def holders(self):
        return [child for child, (mount, index, _) in self.running.items() if self.holding[self.places[mount, index]]]

    def disturb(self):
        choice = self.random
        child = choice.choice(list(self.running))
        holders = self.holders() if self.is_holders_turn else []
        if holders or choice.random() < 0.2:
            if holders:
                child = choice.choice(holders)
            self.is_holders_turn = not holders
            self.tell("worker-kill", child)
            self.killed.add(child)
            os.kill(child, signal.SIGKILL)
        elif child not in self.killed:
            self.tell("worker-signal", child)
            os.kill(child, choice.choice((signal.SIGUSR1, signal.SIGUSR2)))

    def run(self):
        while not os.path.exists(self.calm):
            self.disturb()
            time.sleep(0.2)
            self.reap(not os.path.exists(self.calm))
        begin = now()
        while self.running:
            self.reap(False)
            if now() - begin > PATIENCE * 1e9:
                left = sorted(f"{os.path.basename(mount)}{index}" for mount, index, _ in self.running.values())
                sys.exit(f"without a lock {PATIENCE} s after the faults: {' '.join(left)}")
            time.sleep(0.05)
        print(f"each had each lock {(now() - begin) / 1e9:.1f} s after the last fault")


def work(seed, number, records, faults, calm, *mounts):
    os.makedirs(records, exist_ok=True)
    supervisor = Supervisor(seed, int(number), records, faults, calm, mounts)
    try:
        supervisor.run()
    finally:
        for child in supervisor.running:
            os.kill(child, signal.SIGKILL)


#
# Whether it was right
#


class Revocation:
    """Somebody has revoked the lease of a host by hand, which takes its locks away without asking. No service can tell the host
    before another one is granted: so for a while the host may go on to believe in its locks, and hand them over to other processes
    of its own. How long is known. What asks the servers fails from when the revocation has returned. Everything else fails from
    when the host has seen that the lease is over, and at the latest when it is over by the host's own reckoning: one session
    timeout after the last keep-alive that was answered, which was sent before the revocation.

    FAULTS has it as "begin", "returned", and "end" when the host says that it has seen it, or a session timeout later. Times are
    seconds."""

    def __init__(self, host, begin):
        self.host = host
        self.begin = begin
        self.returned = self.end = float("inf")

    @classmethod
    def read(cls, faults):
        """All of them; those of one host come one after the other."""
        latest, found = {}, []
        for at, what, fault, target in faults:
            if fault != LEASE_REVOKE:
                continue
            if what == "begin":
                latest[target] = cls(target, at)
                found.append(latest[target])
            elif what == "returned":
                latest[target].returned = at + CLOCK_STEP
                latest[target].end = at + CLOCK_STEP + SESSION_TIMEOUT
            else:
                latest[target].end = min(latest[target].end, at + CLOCK_STEP)
        return found

    def explains(self, hold):
        """Whether the host may have believed in the hold without having it."""
        return (
            hold.host == self.host
            and self.begin * 1e9 <= hold.proven < self.end * 1e9
            and hold.served <= self.returned * 1e9
        )


def overlaps(holds):
    """The pairs that exclude each other and were held at the same time; the holds are sorted by their beginning."""
    current = []
    for hold in holds:
        if hold.until < hold.returned:
            continue  # it was never held
        current = [other for other in current if other.until > hold.returned]
        for other in current:
            if EXCLUSIVE in (hold.mode, other.mode) and other.start <= hold.end and hold.start <= other.end:
                yield other, hold
        if hold.until > hold.returned:
            current.append(hold)


def shrunk_tokens(holds):
    """The pairs that exclude each other of which the later one has no greater token. Each token was proof of its hold,
    so that the order of the beginnings is that of the grants."""
    greatest = {mode: [None] * BYTES for mode in (SHARED, EXCLUSIVE)}
    for hold in holds:
        if not hold.token:
            continue
        for mode in (SHARED, EXCLUSIVE) if hold.mode == EXCLUSIVE else (EXCLUSIVE,):
            for other in {id(it): it for it in greatest[mode][hold.start : hold.end + 1] if it}.values():
                if hold.token <= other.token:
                    yield other, hold
        mine = greatest[hold.mode]
        for byte in range(hold.start, hold.end + 1):
            if mine[byte] is None or mine[byte].token < hold.token:
                mine[byte] = hold


def read_faults(path):
    """Seconds, what, and which fault, in their order."""
    with open(path, encoding="ascii") as file:
        faults = [line.split() for line in file]
    return sorted((float(at), what, fault, target) for at, what, fault, target in faults)


class Checker:
    def __init__(self, faults):
        self.faults = faults
        self.revocations = Revocation.read(faults)
        self.counts = collections.Counter()
        self.longest = 0
        self.violations = 0

    def violation(self, what, *records):
        self.violations += 1
        if self.violations > 10:
            return
        print(f"VIOLATION: {what}", *records, sep="\n  ")
        begin, end = (record.returned / 1e9 for record in (records[0], records[-1]))
        for at, what, fault, target in self.faults:
            if begin - 10 < at < end + 1 and fault != "worker-signal":
                print(f"    {at:.3f} {what} {fault} {target}")

    def count(self, record):
        counts = self.counts
        if not record.returned:
            counts["never returned"] += 1  # the worker was killed in it
            return
        counts[f"call {name_of(record.error)}"] += 1
        if record.granted:
            counts["granted"] += 1
            counts[f"granted {record.kind} {'exclusive' if record.mode else 'shared'}"] += 1
            counts[f"fate {record.fate}"] += 1
            counts["tokens"] += record.token > 0
            self.longest = max(self.longest, record.returned - record.asked)

    def until(self, hold):
        """Until when the hold excludes others, by its proofs."""
        for revocation in self.revocations:
            if revocation.explains(hold):
                self.counts["outlived"] += 1
                return max(hold.served, int(revocation.begin * 1e9))
        return hold.proven

    def check(self, holds):
        """Of one name."""
        for hold in holds:
            hold.until = self.until(hold)
            if hold.other_token:
                self.violation(f"the token of a hold became {hold.other_token:#x}", hold)
            if hold.revived:
                self.violation(f"was fenced, and not so at {hold.revived / 1e9:.6f}", hold)
        holds.sort(key=lambda hold: hold.returned)
        for one, other in overlaps(holds):
            self.violation("both held", one, other)
        for one, other in shrunk_tokens(holds):
            self.violation("the later one has no greater token", one, other)

    def print(self, lost):
        counts = self.counts
        by_kind = ", ".join(f"{what[8:]} {count}" for what, count in sorted(counts.items()) if what.startswith("granted "))
        print(f"acquisitions: {counts['granted']} ({by_kind})")
        refused = ", ".join(
            f"{what[5:]} {count}" for what, count in sorted(counts.items()) if what.startswith("call ") and what != "call 0"
        )
        print(f"not granted: {refused}, killed in the call {counts['never returned']}")
        print(
            f"handles fenced: {counts[f'fate {FENCED}']}, lost with the mount: {counts[f'fate {UNMOUNTED}']}, "
            f"holders killed: {counts[f'fate {UNKNOWN}']}, sessions lost: {lost}"
        )
        if self.revocations:
            print(f"leases revoked by hand: {len(self.revocations)}, holds that may have been believed in after that: {counts['outlived']}")
        print(f"longest wait: {self.longest / 1e9:.1f} s, tokens: {counts['tokens']}")

    def too_little(self, lost, server_faults):
        counts = self.counts
        injected = collections.Counter(fault for _, what, fault, _ in self.faults if what == "begin")
        print("faults:", ", ".join(f"{fault} {count}" for fault, count in sorted(injected.items())))
        if any(revocation.returned == float("inf") for revocation in self.revocations):
            yield "a lease was to be revoked, and it is not known when it was"
        seconds = self.faults[-1][0] - self.faults[0][0]
        for fault in itertools.chain(HOST_FAULTS, server_faults or SERVER_FAULTS, WORKER_FAULTS):
            if not injected[fault]:
                yield f"{fault} never came"
        if counts["granted"] < 2 * seconds:
            yield f"few locks were granted in {seconds:.0f} s"
        for kind in KINDS:
            if not counts[f"granted {kind} exclusive"]:
                yield f"{kind} was never granted"
        if not lost and not server_faults:
            yield "no session was lost"
        if not counts[f"fate {FENCED}"] + counts[f"fate {UNMOUNTED}"] and not server_faults:
            yield "no holder lost its lock"
        if not counts[f"fate {UNKNOWN}"]:
            yield "no holder was killed"
        if not counts[f"fate {UNMOUNTED}"] + sum(counts[f"call {name_of(error)}"] for error in DEAD):
            yield "nobody lost the mount"

    def noticed(self, lost, _):
        """What must not be seen of the faults."""
        counts = self.counts
        faults = sum(what == "begin" and fault not in WORKER_FAULTS for _, what, fault, _ in self.faults)
        print("faults:", faults)
        if faults < 10 or counts["granted"] < 100:
            yield "there were hardly any faults, or locks"
        if lost:
            yield "a session was lost"
        if counts[f"fate {FENCED}"] + counts["call EIO"]:
            yield "a handle was fenced"
        if counts[f"fate {UNMOUNTED}"] + sum(counts[f"call {name_of(error)}"] for error in DEAD):
            yield "somebody lost the mount"


def check(records, faults, lost, *server_faults, unnoticed=False):
    checker = Checker(read_faults(faults))
    for name in NAMES + OWN:
        holds = []
        for record in read_records(records, name):
            checker.count(record)
            if record.granted and record.proven:
                holds.append(record)
        checker.check(holds)
    checker.print(int(lost))
    failures = list((checker.noticed if unnoticed else checker.too_little)(int(lost), server_faults))
    print(f"violations: {checker.violations}")
    if checker.violations:
        failures.append("exclusion, or what tells of it, is broken")
    print(*failures, sep="\n")
    sys.exit(bool(failures))


def check_unnoticed(records, faults, lost):
    check(records, faults, lost, unnoticed=True)


COMMANDS = {
    "plan": (plan, 2),
    "plan-restarts": (plan_restarts, 3),
    "work": (work, 6),
    "check": (check, 3),
    "check-unnoticed": (check_unnoticed, 3),
}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    command, number = COMMANDS[sys.argv[1]]
    if len(sys.argv) - 2 < number:
        sys.exit(__doc__)
    command(*sys.argv[2:])


if __name__ == "__main__":
    main()
