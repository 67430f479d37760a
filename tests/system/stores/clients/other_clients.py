#!/usr/bin/python3
"""other_clients.py HOST:PORT TIMEOUT_MS: holds locks of kazoo (lock, write, read), and of the textbook (W, R), as it is told line by line:

take ID KIND PATH               "ID held" when it is
try ID KIND PATH                "ID held" or "ID refused"
release ID                      "ID released"
count ID KIND PATH FILE TIMES   increments the number in a file so often, each time under the lock: "ID counted"
look ID KIND PATH FILE TIMES    reads it so often, twice each time under the lock, and it is the same: "ID looked"
wait ID PATH N                  "ID there" when the znode has exactly N children
queue ID PATH                   "ID NAME..." with the children, the claims in their order
make ID PATH                    an ephemeral znode: "ID made"; not sequential, as that of a lock that was downgraded
delete ID PATH                  "ID deleted"
watched ID PATH                 "ID watched" when the server has a watch on the znode

KIND may be followed by names of other clients that count, such as lock+__WRIT__+__READ__ (extra_lock_patterns).
Each id is a thread of its own. An error is "ID failed: WHY".
"""

import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

address, timeout_ms = sys.argv[1], int(sys.argv[2])
client = KazooClient(address, timeout=timeout_ms / 1000)
client.start(timeout=30)
held = {}


class TextbookLock:
    """The shared lock of the textbooks: of the parts between dashes the first is a host, the second R or W, the last the number."""

    def __init__(self, kind, path):
        self.kind, self.path, self.name = kind, path, None

    @staticmethod
    def parts(name):
        parts = name.split("-")
        return int(parts[-1]), parts[1]

    def before(self):
        """The claim that this one waits for, or None."""
        number, _ = self.parts(self.name)
        names = [name for name in client.get_children(self.path) if self.parts(name)[0] < number]
        if self.kind == "R":
            names = [name for name in names if self.parts(name)[1] == "W"]
        return max(names, key=self.parts, default=None)

    def acquire(self, blocking=True):
        created = client.create(f"{self.path}/127.0.0.1-{self.kind}-", ephemeral=True, sequence=True, makepath=True)
        self.name = created.rsplit("/", 1)[1]
        while name := self.before():
            if not blocking:
                self.release()
                return False
            gone = threading.Event()
            if client.exists(f"{self.path}/{name}", watch=lambda _, gone=gone: gone.set()) and not gone.wait(90):
                raise TimeoutError("not within 90 s")
        return True

    def release(self):
        client.delete(f"{self.path}/{self.name}")

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()


def make_lock(kind, path):
    if kind in ("R", "W"):
        return TextbookLock(kind, path)
    name, *patterns = kind.split("+")
    recipe = {"lock": client.Lock, "write": client.WriteLock, "read": client.ReadLock}[name]
    return recipe(path, "test", extra_lock_patterns=patterns)


def take(ident, kind, path):
    lock = make_lock(kind, path)
    lock.acquire()
    held[ident] = lock
    return "held"


def try_(ident, kind, path):
    lock = make_lock(kind, path)
    if not lock.acquire(blocking=False):
        return "refused"
    held[ident] = lock
    return "held"


def release(ident):
    held.pop(ident).release()
    return "released"


def count(_, kind, path, file, times):
    lock = make_lock(kind, path)
    for _ in range(int(times)):
        with lock:
            with open(file, encoding="ascii") as stream:
                number = int(stream.read())
            with open(file, "w", encoding="ascii") as stream:
                stream.write(f"{number + 1}\n")
    return "counted"


def look(_, kind, path, file, times):
    lock = make_lock(kind, path)
    for _ in range(int(times)):
        # A read lock that waited would wait for writers that come later, before 2.9.
        until(lambda: lock.acquire(blocking=False))
        with open(file, encoding="ascii") as stream:
            number = int(stream.read())
            time.sleep(0.001)
            stream.seek(0)
            if int(stream.read()) != number:
                raise RuntimeError("changed beside a reader")
        lock.release()
    return "looked"


def until(condition):
    end = time.monotonic() + 90
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("not within 90 s")
        time.sleep(0.005)


def children(path):
    try:
        return sorted(client.get_children(path), key=lambda name: name[-10:])
    except NoNodeError:
        return []


def wait(_, path, number):
    until(lambda: len(children(path)) == int(number))
    return "there"


def watched(_, path):
    until(lambda: path in client.command(b"wchp").split())
    return "watched"


def make(_, path):
    client.create(path, ephemeral=True)
    return "made"


def delete(_, path):
    client.delete(path)
    return "deleted"


VERBS = {
    "take": take,
    "try": try_,
    "release": release,
    "count": count,
    "look": look,
    "wait": wait,
    "watched": watched,
    "make": make,
    "delete": delete,
    "queue": lambda _, path: " ".join(children(path)),
}


def work(ident, orders):
    while True:
        verb, *arguments = orders.get()
        try:
            answer = VERBS[verb](ident, *arguments)
        except Exception as error:  # pylint: disable=broad-except
            answer = f"failed: {error!r}"
        with printing:
            print(ident, answer, flush=True)


printing = threading.Lock()  # print() writes a line in pieces
threads = {}
print("ready", flush=True)
for line in sys.stdin:
    verb, ident, *arguments = line.split()
    if ident not in threads:
        threads[ident] = queue.Queue()
        threading.Thread(target=work, args=(ident, threads[ident]), daemon=True).start()
    threads[ident].put((verb, *arguments))
