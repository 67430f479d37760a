#!/usr/bin/python3
"""record_faults.py SEED PROCESSES CALM FILE...: processes lock ranges of one file while its hosts lose their sessions.

They take turns with the file's names on different hosts. Each takes random ranges (several, conversions, with and without
waiting, interrupted by signals) and keeps them for a while, one process of each name for seconds. As long as fsync succeeds
they are held: from when the call returned until the last such fsync was called. Whoever is told of a loss opens the file again.
Once the file CALM exists, each has to get the whole file and ends. Prints how many calls had which result. Ends with an error
if two processes held the same byte at the same time though one of them wrote it, if a call had a result that no fault
explains, if a process does not come to its end, or if there was too little to see.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import itertools
import json
import os
import random
import select
import signal
import struct
import sys
import time

TYPES = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}
BYTES = 32
PATIENCE = 120  # seconds for everybody's end once the faults are over, and for a mount whose daemon died
GRANTS_MIN = 30  # of reading locks, and of writing locks
LOSSES_MIN = 4  # of all
# What a call may fail with that does not wait, or does; and what says that the locks, or the mount, are lost.
REFUSED = {errno.EAGAIN, errno.ENOLCK}
GIVEN_UP = {errno.EINTR, errno.EDEADLK}
LOST = {errno.EIO, errno.ENOTCONN, errno.ECONNABORTED}

libc = ctypes.CDLL(None, use_errno=True)


def name_of(number):
    return "EDEADLK" if number == errno.EDEADLK else errno.errorcode[number]


class Worker:
    def __init__(self, path, holds_long, seed):
        self.path = path
        self.holds_long = holds_long  # keeps its locks so long that the session may end and a rival be granted meanwhile
        self.random = random.Random(seed)
        # A file on the device that the mount hides is one of the folder below it, while there is no mount.
        self.hidden_device = os.stat(os.path.dirname(os.path.dirname(path))).st_dev
        self.file = None
        self.counts = collections.Counter()
        self.intervals = []  # of each byte: byte, "r" or "w", begin, end
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.siginterrupt(signal.SIGALRM, True)
        self.reopen()

    def reopen(self):
        if self.file is not None:
            with contextlib.suppress(OSError):  # it is closed all the same
                os.close(self.file)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
                if os.fstat(self.file).st_dev != self.hidden_device:
                    return
                os.close(self.file)
            time.sleep(0.05)
        sys.exit(f"{self.path} cannot be opened")

    def call(self, kind, start, end, patience=None):
        """Returns the errno or 0; loss is an exception. With patience, waits until a signal comes after so many seconds."""
        lock = ctypes.create_string_buffer(struct.pack("hhqqi4x", TYPES[kind], 0, start, end - start + 1, 0), 32)
        if patience is not None:
            signal.setitimer(signal.ITIMER_REAL, patience, 0.2)  # again and again: the first may come before the call
        failed = libc.fcntl(self.file, fcntl.F_SETLK if patience is None else fcntl.F_SETLKW, lock)
        number = ctypes.get_errno() if failed else 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        if number in LOST:
            raise OSError(number, os.strerror(number))
        self.counts[f"{kind} {name_of(number) if number else 'granted'}"] += 1
        if number and number not in (REFUSED if patience is None else GIVEN_UP):
            sys.exit(f"{kind} {start}-{end} with patience {patience} gave {name_of(number)}")
        return number

    def note(self, held, bytes_range, end):
        """What was held of these bytes was so until then."""
        for byte in bytes_range:
            if byte in held:
                kind, begin = held[byte]
                self.intervals.append((byte, kind, begin, end))

    def keep(self, held, seconds):
        """Keeps what it has unless it hears of a loss, which is an exception."""
        stop = time.monotonic() + seconds
        proven = None
        try:
            while proven is None or proven < stop:
                asked = time.monotonic()
                os.fsync(self.file)
                proven = asked
                time.sleep(0.005)
        finally:
            if proven is not None:
                self.note(held, range(BYTES), proven)

    def hold(self, wishes, seconds):
        """Takes ranges one after the other, keeps what it got and gives it up. Returns whether it got all."""
        held = {}  # byte: "r" or "w" and since when
        got_all = True
        for kind, start, end, patience in wishes:
            asked = time.monotonic()
            error = self.call(kind, start, end, patience)
            granted = time.monotonic()
            if error == errno.EDEADLK and not held:
                sys.exit("EDEADLK for one who held nothing")
            if error:
                got_all = False
                if error == errno.EDEADLK:
                    break
                continue
            changed = [byte for byte in range(start, end + 1) if held.get(byte, ("", 0))[0] != kind]
            self.note(held, changed, asked)  # the handle was not lost then, or the call would have failed
            held.update({byte: (kind, granted) for byte in changed})
        if held:
            self.keep(held, seconds)
        self.call("u", 0, BYTES - 1)
        return got_all

    def hold_some(self):
        wishes = []
        for _ in range(1 if self.holds_long else self.random.choice([1, 2, 3])):
            start = self.random.randrange(BYTES)
            end = min(BYTES - 1, start + self.random.randrange(5))
            patience = self.random.choice([0.01, 0.05, 0.1, 0.5]) if self.random.random() < 0.8 else None
            wishes.append((self.random.choice("rww"), start, end, patience))
        self.hold(wishes, self.random.uniform(2, 8) if self.holds_long else self.random.uniform(0, 0.05))

    def outlive(self, step, *arguments):
        """Returns the result of the step, or False if the locks were lost in it."""
        try:
            return step(*arguments)
        except OSError as error:
            if error.errno not in LOST:
                raise
            self.counts["lost"] += 1
            self.reopen()
            return False

    def work(self, calm):
        while not os.path.exists(calm):
            self.outlive(self.hold_some)
        while not self.outlive(self.hold, [("w", 0, BYTES - 1, PATIENCE)], 0):
            pass


def conflicts(intervals):
    """The pairs of intervals (byte, kind, begin, end, process) of two processes that exclude each other and overlap."""
    for _, of_byte in itertools.groupby(sorted(intervals, key=lambda it: (it[0], it[2])), key=lambda it: it[0]):
        current = []
        for interval in of_byte:
            _, kind, begin, _, process = interval
            current = [other for other in current if other[3] > begin]
            for other in current:
                if other[4] != process and "w" in (kind, other[1]):
                    yield other, interval
            current.append(interval)


def start_worker(path, holds_long, seed, calm):
    """Returns its process id and a file that it writes its counts and intervals to at its end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        worker = Worker(path, holds_long, seed)
        worker.work(calm)
        with os.fdopen(writer, "w") as file:
            json.dump([worker.counts, worker.intervals], file)
        os._exit(0)
    os.close(writer)
    return child, os.fdopen(reader)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    seed, number, calm, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    running = {}  # the file of each process: its number and its id
    for process in range(number):
        path, holds_long = paths[process % len(paths)], process < len(paths)  # one for each name
        child, file = start_worker(path, holds_long, f"{seed} {process}", calm)
        running[file] = process, child

    total, intervals, failures = collections.Counter(), [], []
    end = None
    while running and not failures:
        for file in select.select(list(running), [], [], 0.1)[0]:
            process, child = running.pop(file)
            answer = file.read()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                failures.append(f"process {process} failed ({status})")
                continue
            counts, held = json.loads(answer)
            total.update(counts)
            intervals += [(*interval, process) for interval in held]
        if end is None and os.path.exists(calm):
            end = time.monotonic() + PATIENCE
        if end is not None and time.monotonic() > end:
            failures += [f"process {process} gets no lock after the faults" for process, _ in running.values()]
    for _, child in running.values():
        os.kill(child, signal.SIGKILL)

    found = list(conflicts(intervals))
    failures += [f"violation: both held: {one} and {other}" for one, other in found[:10]]
    print(", ".join(f"{result}: {count}" for result, count in sorted(total.items())))
    print(f"intervals: {len(intervals)}, of these {len(found)} pairs conflict")
    if not failures:
        if min(total["r granted"], total["w granted"]) < GRANTS_MIN:
            failures.append("hardly any lock was granted")
        if total["lost"] < LOSSES_MIN:
            failures.append("hardly any lock was lost")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
