#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""redis_lock.py VERB KIND KEY [FILE TIMES] HOST:PORT...: locks a key of Redis as programs without dlockfs do.

hold KIND KEY SERVER...                 waits until it has the lock, says "held", and keeps it; SIGTERM has it release the
                                        lock, and say "released", or "lost" if it was another's by then
try KIND KEY SERVER...                  takes it and releases it, without waiting: ends with 1 if somebody has it
count KIND KEY FILE TIMES SERVER...     increments the number in a file so often, each time under the lock

KIND is `lock`, redis-py's Lock with timeout=None; `lock:SECONDS`, the same with an end after so long; or `redlock:SECONDS`,
the algorithm of https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ over all the servers.
"""

import random
import signal
import sys
import time
import uuid

import redis
from redis.exceptions import LockNotOwnedError, RedisError

SERVER_LIMIT_S = 0.5  # for an answer of one of several servers
DRIFT = 0.01          # of the clocks, with 2 ms more for small times
RETRY_S = (0.05, 0.2)
COMPARE_AND_DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def connect(address, **options):
    host, port = address.rsplit(":", 1)
    return redis.Redis(host, int(port), **options)


class PythonLock:
    """Of redis-py."""

    def __init__(self, key, lifetime_s, servers):
        self.lock = connect(servers[0]).lock(key, timeout=lifetime_s)

    def acquire(self, blocking=True):
        return self.lock.acquire(blocking=blocking)

    def release(self):
        """Returns whether it was still held."""
        try:
            self.lock.release()
            return True
        except LockNotOwnedError:
            return False


class Redlock:
    def __init__(self, key, lifetime_s, servers):
        self.key = key
        self.lifetime_ms = int(lifetime_s * 1000)
        self.servers = [
            connect(server, socket_timeout=SERVER_LIMIT_S, socket_connect_timeout=SERVER_LIMIT_S) for server in servers
        ]
        self.majority = len(servers) // 2 + 1
        self.value = None

    def ask(self, question):
        """How many servers say yes."""
        count = 0
        for server in self.servers:
            try:
                count += bool(question(server))
            except RedisError:
                pass
        return count

    def acquire(self, blocking=True):
        while True:
            self.value = uuid.uuid4().hex
            begin = time.monotonic()
            count = self.ask(lambda server: server.set(self.key, self.value, nx=True, px=self.lifetime_ms))
            left_ms = self.lifetime_ms * (1 - DRIFT) - 2 - (time.monotonic() - begin) * 1000
            if count >= self.majority and left_ms > 0:
                return True
            self.release()
            if not blocking:
                return False
            time.sleep(random.uniform(*RETRY_S))

    def release(self):
        return self.ask(lambda server: server.eval(COMPARE_AND_DELETE, 1, self.key, self.value)) >= self.majority


def make_lock(kind, key, servers):
    name, _, lifetime = kind.partition(":")
    return {"lock": PythonLock, "redlock": Redlock}[name](key, float(lifetime) if lifetime else None, servers)


def hold(lock):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    lock.acquire()
    print("held", flush=True)
    signal.sigwait([signal.SIGTERM])
    print("released" if lock.release() else "lost", flush=True)


def try_(lock):
    if not lock.acquire(blocking=False):
        sys.exit(1)
    lock.release()


def count(lock, file, times):
    for _ in range(int(times)):
        lock.acquire()
        with open(file, "r+", encoding="ascii") as stream:
            number = int(stream.read())
            stream.seek(0)
            stream.truncate()
            stream.write(f"{number + 1}\n")
        if not lock.release():
            sys.exit("the lock was lost")


def main():
    verb, kind, key, *arguments = sys.argv[1:]
    own = {"hold": 0, "try": 0, "count": 2}[verb]
    {"hold": hold, "try": try_, "count": count}[verb](make_lock(kind, key, arguments[own:]), *arguments[:own])


main()
