#!/usr/bin/python3
"""record_random.py SECONDS SEED PROCESSES KINDS FILE...: many processes lock random ranges of one file.

They take turns with the file's names on different hosts and with KINDS, of "records" (F_SETLK and F_SETLKW: several ranges,
conversions, parts), "descriptions" (F_OFD_*: one range at a time and its conversions) and "flock". What each holds
is also kept in memory that all share, for each byte the number of readers and the writer: it is marked after a lock was taken
and unmarked before it is released. Ends with an error if two held what they must not, if somebody was told EDEADLK who
held nothing, if a process waits for longer than it may, or if one did not end. Prints how many calls had which result.
"""

import collections
import ctypes
import errno
import fcntl
import json
import mmap
import multiprocessing
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW = 6, 7, 37, 38
TYPES = {"r": 0, "w": 1, "u": 2}
BYTES = 24
PATIENCE = 90  # seconds for any wait

libc = ctypes.CDLL(None, use_errno=True)


class Books:
    """For each byte how many read it and who writes it: what processes believe to hold."""

    def __init__(self):
        self.memory = mmap.mmap(-1, BYTES * 8)
        self.notes = mmap.mmap(-1, 65536)  # what each process does, for failures: 128 bytes each
        self.lock = multiprocessing.Lock()

    def note(self, process, text):
        self.notes[process * 128 : process * 128 + 128] = text.encode()[:128].ljust(128)

    def noted(self, process):
        return self.notes[process * 128 : process * 128 + 128].decode().strip("\0 ")

    def mark(self, process, start, end, held, kind):
        """The process holds the bytes as "r", "w" or not ("u") from now on, `held` what it did before."""
        with self.lock:
            for byte in range(start, end + 1):
                readers, writer = struct.unpack_from("ii", self.memory, byte * 8)
                readers -= held[byte] == "r"
                writer = 0 if held[byte] == "w" else writer
                if kind != "u" and writer or kind == "w" and readers:
                    text = f"byte {byte}: {process} got {kind} beside {readers} readers, writer {writer}\n"
                    os.write(2, text.encode())
                    os._exit(3)
                readers += kind == "r"
                writer = process if kind == "w" else writer
                struct.pack_into("ii", self.memory, byte * 8, readers, writer)
                held[byte] = kind


class Worker:
    def __init__(self, number, kind, path, books, seed):
        self.number, self.kind, self.books = number, kind, books
        self.random = random.Random(f"{seed} {number}")
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self.held = ["u"] * BYTES
        self.counts = collections.Counter()
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.siginterrupt(signal.SIGALRM, True)

    def call(self, mode, start, end, waits):
        """The name of the errno, or None."""
        if self.kind == "flock":
            operation = {"r": fcntl.LOCK_SH, "w": fcntl.LOCK_EX, "u": fcntl.LOCK_UN}[mode]
            failed = libc.flock(self.fd, operation | (0 if waits else fcntl.LOCK_NB))
        else:
            commands = (F_SETLK, F_SETLKW) if self.kind == "records" else (F_OFD_SETLK, F_OFD_SETLKW)
            length = end - start + 1 if end < BYTES - 1 else 0
            lock = ctypes.create_string_buffer(struct.pack("hhqqi4x", TYPES[mode], 0, start, length, 0), 32)
            failed = libc.fcntl(self.fd, commands[waits], lock)
        number = ctypes.get_errno()
        return ("EDEADLK" if number == errno.EDEADLK else errno.errorcode[number]) if failed else None

    def release(self, start=0, end=BYTES - 1):
        if self.kind == "flock":
            start, end = 0, BYTES - 1
        self.books.mark(self.number, start, end, self.held, "u")
        error = self.call("u", start, end, True)
        if error:
            sys.exit(f"{self.kind}: unlock gave {error}")

    def take(self):
        mode = self.random.choice("rrw")
        start = self.random.randrange(BYTES)
        end = min(BYTES - 1, start + self.random.randrange(8))
        if self.kind == "flock":
            start, end = 0, BYTES - 1
        if self.kind == "flock" or self.kind == "descriptions" and self.random.random() < 0.6:
            self.release()
        elif self.kind == "descriptions" and any(kind != "u" for kind in self.held):
            # A conversion of what it has; one that waits could be a deadlock, which is not promised to be seen.
            held = [byte for byte in range(BYTES) if self.held[byte] != "u"]
            start, end = held[0], held[-1]
        before = self.held[:]
        had = any(kind != "u" for kind in before)
        waits = self.random.random() < 0.7 and not (had and self.kind == "descriptions")
        if mode == "r":  # what it writes becomes readable for others before the call returns
            self.downgrade(start, end)
        alarm = waits and self.random.random() < 0.15
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, self.random.choice([0.0005, 0.002, 0.01, 0.05]))
        text = "".join(kind if kind != "u" else "." for kind in before)
        self.books.note(self.number, f"{os.getpid()} {self.kind} holds {text}, asks {mode} {start}-{end} waits={waits}")
        begin = time.monotonic()
        error = self.call(mode, start, end, waits)
        seconds = time.monotonic() - begin
        self.books.note(self.number, "")
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.counts[f"{mode} {error or 'granted'}"] += 1
        if seconds > PATIENCE:
            sys.exit(f"waited for {seconds:.1f} s")
        if error is None:
            self.books.mark(self.number, start, end, self.held, mode)
            return
        allowed = {"EAGAIN"} if not waits else {"EDEADLK"} | ({"EINTR"} if alarm else set())
        if error not in allowed:
            sys.exit(f"{self.kind}: {mode} {start}-{end} {'waiting' if waits else 'not waiting'} gave {error}")
        if error == "EDEADLK" and not had:
            sys.exit("EDEADLK for one who held nothing")
        for byte in range(start, end + 1):
            if self.held[byte] != before[byte]:
                self.books.mark(self.number, byte, byte, self.held, before[byte])  # still its own
        if error == "EDEADLK":
            self.release()

    def downgrade(self, start, end):
        for byte in range(start, end + 1):
            if self.held[byte] == "w":
                self.books.mark(self.number, byte, byte, self.held, "r")

    def work(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.take()
            if self.random.random() < 0.3:
                time.sleep(self.random.random() * 0.003)
            if self.random.random() < 0.5:
                start = self.random.randrange(BYTES)
                self.release(start, min(BYTES - 1, start + self.random.randrange(8)))
            if self.random.random() < 0.25:
                self.release()
        self.release()


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    seconds, seed, number = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    kinds, paths = sys.argv[4].split(","), sys.argv[5:]
    books = Books()
    running = {}
    for index in range(number):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            kind = kinds[index // len(paths) % len(kinds)]
            worker = Worker(index + 1, kind, paths[index % len(paths)], books, seed)
            worker.work(seconds)
            os.write(writer, json.dumps(worker.counts).encode())
            os._exit(0)
        os.close(writer)
        running[os.pidfd_open(child)] = (index + 1, child, reader)

    total, failures = collections.Counter(), []
    end = time.monotonic() + seconds + PATIENCE
    while running and not failures:
        ready = select.select(list(running), [], [], max(end - time.monotonic(), 0))[0]
        if not ready:
            failures += [
                f"process {process} waits for ever: {books.noted(process)}" for process, _, _ in running.values()
            ]
        for pidfd in ready:
            process, child, reader = running.pop(pidfd)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                failures.append(f"process {process} failed ({status})")
            else:
                total.update(json.loads(os.read(reader, 65536)))
    if failures and "ON_FAILURE" in os.environ:  # a command that shows the queue
        subprocess.run(os.environ["ON_FAILURE"].split(), timeout=30, check=False)
    for pidfd in running:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    print(", ".join(f"{result}: {count}" for result, count in sorted(total.items())))
    if any(struct.unpack_from("ii", books.memory, byte * 8) != (0, 0) for byte in range(BYTES)) and not failures:
        failures.append("the books do not balance")
    if not failures and min(total["r granted"], total["w granted"]) < 10:
        failures.append("hardly any lock was granted")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
