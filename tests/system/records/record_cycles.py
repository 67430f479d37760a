#!/usr/bin/python3
"""record_cycles.py forked FOLDER | ring FILE FILE FILE | waiter FILE FILE FILE: processes that wait in cycles.

forked: three processes inherit a file that was made by mkstemp(3), an exclusive open. Each locks a range, and then
waits for the next one's. One is told EDEADLK, and when it lets go, the others are granted one after the other. The
same where two wait for each other and one of them for the third, too, who lets go.
ring: the same by files that each opens; they may be names of one lock on several hosts.
waiter: the first one holds [0,10), the second one waits for [5,15), the third one asks for [12,25), the first one
for [20,30). Nobody is told EDEADLK, as the second one holds nothing: the third one is granted, then the first one,
then the second one. Prints how soon the third one was. The files are on mounts of dlockfs.
"""

import errno
import fcntl
import os
import select
import signal
import struct
import sys
import tempfile
import time

SECONDS = 60  # for anything that must happen


class Process:
    """A process that locks what it is told, by a descriptor that it inherits or a file that it opens."""

    def __init__(self, file):
        (requests, self.requests), (self.answers, answers) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.serve(requests, answers, file)
            finally:
                os._exit(1)
        os.close(requests)
        os.close(answers)

    @staticmethod
    def serve(requests, answers, file):
        fd = file if isinstance(file, int) else os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        while True:
            request = os.read(requests, 24)
            kind, start, length = struct.unpack("qqq", request)
            error = 0
            try:
                fcntl.lockf(fd, kind, length, start)
            except OSError as failed:
                error = failed.errno
            os.write(answers, bytes([error]))

    def ask(self, start, length, kind=fcntl.LOCK_EX):
        os.write(self.requests, struct.pack("qqq", kind, start, length))

    def result(self):
        if not select.select([self.answers], [], [], SECONDS)[0]:
            sys.exit(f"process {self.pid} still waits")
        error = os.read(self.answers, 1)[0]
        return {0: "granted", errno.EDEADLK: "EDEADLK"}.get(error) or os.strerror(error)

    def expect(self, expected):
        if (found := self.result()) != expected:
            sys.exit(f"process {self.pid}: {found}, not {expected}")

    def waits(self):
        return not select.select([self.answers], [], [], 0)[0]

    def lock(self, start, length):
        self.ask(start, length)
        self.expect("granted")

    def unlock(self, start=0, length=0):
        self.ask(start, length, fcntl.LOCK_UN)
        self.expect("granted")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def play_ring(processes):
    """Each waits for what the next one holds, whichever of them is the last to ask."""
    for number, process in enumerate(processes):
        process.lock(number * 10, 5)
    for number, process in enumerate(processes):
        process.ask((number + 1) % 3 * 10, 5)
    answered = select.select([process.answers for process in processes], [], [], SECONDS)[0]
    if not answered:
        sys.exit("nobody is told of the deadlock")
    number = next(n for n, process in enumerate(processes) if process.answers == answered[0])
    processes[number].expect("EDEADLK")
    processes[number].unlock()
    for before in (number - 1, number - 2):
        processes[before].expect("granted")
        processes[before].unlock()


def play_late(processes):
    """The third one asks for what the first two hold, and the second one for what the third one does: the first one
    lets go, which does not help."""
    first, second, third = processes
    first.lock(2, 5)
    second.lock(9, 5)
    third.lock(17, 5)
    second.ask(17, 5)
    third.ask(2, 14)
    first.unlock()
    told = select.select([second.answers, third.answers], [], [], SECONDS)[0]
    if not told:
        sys.exit("nobody is told of the deadlock")
    told, other = (second, third) if told[0] == second.answers else (third, second)
    told.expect("EDEADLK")
    if not other.waits():
        sys.exit(f"process {other.pid} is in no cycle any more: {other.result()}")
    told.unlock()
    other.expect("granted")
    other.unlock()


def wait_for_claims(path, number):
    """Until so many claims stand in the queue of a lock."""
    queue = f"{os.path.dirname(path)}/.dlockfs/locks/{os.path.basename(path)}"
    end = time.monotonic() + SECONDS
    while True:
        with open(queue, encoding="utf-8") as file:
            if f" claims={number} " in file.readline():
                return
        if time.monotonic() > end:
            sys.exit(f"{queue}: not {number} claims")
        time.sleep(0.01)


def play_waiter(processes, path):
    first, second, third = processes
    first.lock(0, 10)
    second.ask(5, 10)
    wait_for_claims(path, 2)
    third.ask(12, 13)
    wait_for_claims(path, 3)
    begin = time.monotonic()
    first.ask(20, 10)
    third.expect("granted")
    print(f"granted after {(time.monotonic() - begin) * 1000:.1f} ms")
    if not (first.waits() and second.waits()):
        sys.exit("somebody else is granted or refused beside it")
    third.unlock()
    first.expect("granted")
    first.unlock()
    second.expect("granted")
    second.unlock()


def main():
    mode, *files = sys.argv[1:] or [""]
    if (mode, len(files)) not in (("forked", 1), ("ring", 3), ("waiter", 3)):
        sys.exit(__doc__)
    if mode == "forked":
        fd, path = tempfile.mkstemp(dir=files[0])
        os.unlink(path)
        files = [fd] * 3
    processes = [Process(file) for file in files]
    try:
        if mode == "waiter":
            play_waiter(processes, files[0])
        else:
            play_ring(processes)
            play_late(processes)
    finally:
        for process in processes:
            process.end()


main()
