#!/usr/bin/python3
"""A lock that is handed from host to host by calls that do not wait: ping_pong.py FILE FILE ROUNDS CALLS KIND...

Two processes, each with one of the files, which are the same lock on two mounts, take turns. Who has the lock
releases it, and when the call has returned tells the other one, which asks at once, without waiting. A refusal is
spurious: nobody holds the lock any more. Who was refused waits for the lock, and the game goes on. Of each kind (flock,
close, record, ofd, open) prints how many of the calls were refused, and how long each of CALLS took that were
rightly refused, because the other one had the lock: the median in milliseconds, and the longest.
"""

import fcntl
import os
import socket
import struct
import sys
import time

F_OFD_SETLK, F_OFD_SETLKW = 37, 38


def range_lock(descriptor, command, kind):
    fcntl.fcntl(descriptor, command, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0))


class Lock:
    """One side's way to take the lock and to let it go."""

    def __init__(self, kind, path):
        self.kind, self.path, self.descriptor = kind, path, -1
        if kind in ("flock", "record", "ofd"):
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

    def call(self, waits):
        if self.kind == "record":
            range_lock(self.descriptor, fcntl.F_SETLKW if waits else fcntl.F_SETLK, fcntl.F_WRLCK)
        elif self.kind == "ofd":
            range_lock(self.descriptor, F_OFD_SETLKW if waits else F_OFD_SETLK, fcntl.F_WRLCK)
        elif self.kind == "open":
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | (0 if waits else os.O_NONBLOCK)
            self.descriptor = os.open(self.path, flags)
        else:
            if self.kind == "close":
                self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            except BlockingIOError:
                if self.kind == "close":
                    os.close(self.descriptor)
                raise

    def take(self, waits=False):
        """Returns whether the lock was granted."""
        try:
            self.call(waits)
        except (BlockingIOError, FileExistsError):
            return False
        return True

    def release(self):
        if self.kind == "flock":
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        elif self.kind == "record":
            range_lock(self.descriptor, fcntl.F_SETLK, fcntl.F_UNLCK)
        elif self.kind == "ofd":
            range_lock(self.descriptor, F_OFD_SETLK, fcntl.F_UNLCK)
        else:
            os.close(self.descriptor)


def play(lock, rounds, peer):
    """Returns how often the lock was refused. Each byte on the socket is the permission to take it."""
    refused = 0
    for _ in range(rounds):
        if not peer.recv(1):
            break
        if not lock.take():
            refused += 1
            lock.take(waits=True)
        lock.release()
        peer.send(b"x")
    return refused


def refuse(lock, calls, peer):
    """Returns the times of calls that are refused while the other one has the lock."""
    times = []
    peer.send(b"x")
    peer.recv(1)
    for _ in range(calls):
        begin = time.monotonic()
        if lock.take():
            sys.exit("violation: granted while another host holds it")
        times.append(1000 * (time.monotonic() - begin))
    peer.send(b"x")
    return sorted(times)


def be_refused_by(lock, peer):
    peer.recv(1)
    lock.take(waits=True)
    peer.send(b"x")
    peer.recv(1)
    lock.release()


def second(path, rounds, kind, peer):
    lock = Lock(kind, path)
    refused = play(lock, rounds, peer)
    peer.recv(1)  # the last one: the game is over
    peer.send(struct.pack("i", refused))
    be_refused_by(lock, peer)


def main():
    rounds, calls = int(sys.argv[3]) // 2, int(sys.argv[4])
    for kind in sys.argv[5:]:
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            here.close()
            second(sys.argv[2], rounds, kind, there)
            os._exit(0)
        there.close()
        lock = Lock(kind, sys.argv[1])
        lock.take(waits=True)
        lock.release()
        here.send(b"x")
        refused = play(lock, rounds, here)
        refused += struct.unpack("i", here.recv(4))[0]
        times = refuse(lock, calls, here)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("the other side failed")
        print(f"{kind}: {refused} of {2 * rounds} refused; a refusal took {times[calls // 2]:.1f} ms, "
              f"at most {times[-1]:.1f} ms", flush=True)


main()
