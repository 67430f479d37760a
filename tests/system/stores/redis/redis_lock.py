#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""redis_lock.py VERB KIND KEY [FILE TIMES] HOST:PORT...: locks a key of Redis as programs without dlockfs do.

hold KIND KEY SERVER...                 waits until it has the lock, says "held", and keeps it; SIGTERM has it release the
                                        lock, and say "released", or "lost" if it was another's by then
try KIND KEY SERVER...                  takes it and releases it, without waiting: ends with 1 if somebody has it
count KIND KEY FILE TIMES SERVER...     increments the number in a file so often, each time under the lock

KIND is `lock`, redis-py's Lock with timeout=None; `lock:SECONDS`, the same with an end after so long; `redlock:SECONDS`,
the algorithm of https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ over all the servers; or `redisson:SECONDS`,
`redisson-write:SECONDS` and `redisson-read:SECONDS`, a model of Redisson's getLock() and getReadWriteLock(), which renew the key
three times in that time, and say "woken" if a message had them try again.
"""

import os
import random
import signal
import sys
import threading
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


class Redisson:
    """By the steps of RedissonLock, tryLockInnerAsync and so on (3.45), of which each is a script there."""

    channel = "redisson_lock__channel"
    suffix = ""
    may_take = "redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1"
    took = ""
    gave = "redis.call('del', KEYS[1])"

    def __init__(self, key, lifetime_s, servers):
        self.key = key
        self.lifetime_ms = int(lifetime_s * 1000)
        self.redis = connect(servers[0])
        self.field = f"{uuid.uuid4()}:{os.getpid()}{self.suffix}"
        self.topic = f"{self.channel}:{{{key}}}"
        self.ended = threading.Event()
        self.woken = 0

    def run(self, script, *words):
        return self.redis.eval(script, 2, self.key, self.topic, self.field, *words)

    def take(self):
        """None if it has the lock, else how long the key lasts."""
        return self.run(
            f"if {self.may_take} then {self.took} redis.call('hincrby', KEYS[1], ARGV[1], 1) "
            "redis.call('pexpire', KEYS[1], ARGV[2]) return nil end return redis.call('pttl', KEYS[1])",
            self.lifetime_ms,
        )

    def renew(self):
        while not self.ended.wait(self.lifetime_ms / 3000):
            self.run(
                "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) end",
                self.lifetime_ms,
            )

    def acquire(self, blocking=True):
        left_ms = self.take()
        if left_ms is not None and not blocking:
            return False
        if left_ms is not None:
            self.wait()
        self.ended.clear()
        threading.Thread(target=self.renew, daemon=True).start()
        return True

    def wait(self):
        messages = self.redis.pubsub(ignore_subscribe_messages=True)
        messages.subscribe(self.topic)
        messages.get_message(timeout=SERVER_LIMIT_S)
        while (left_ms := self.take()) is not None:
            self.woken += messages.get_message(timeout=left_ms / 1000) is not None
        # It may have come while the lock was tried for.
        self.woken += messages.get_message(timeout=0.01) is not None
        messages.close()

    def release(self):
        self.ended.set()
        return bool(
            self.run(
                "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end "
                "if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then "
                f"redis.call('hdel', KEYS[1], ARGV[1]) {self.gave} redis.call('publish', KEYS[2], 0) end return 1"
            )
        )


class RedissonWrite(Redisson):
    """RedissonWriteLock."""

    channel = "redisson_rwlock"
    suffix = ":write"
    may_take = "redis.call('hget', KEYS[1], 'mode') == false"
    took = "redis.call('hset', KEYS[1], 'mode', 'write')"
    gave = "if redis.call('hlen', KEYS[1]) == 1 then redis.call('del', KEYS[1]) end"


class RedissonRead(RedissonWrite):
    """RedissonReadLock, whose key here has one end for all readers."""

    suffix = ""
    may_take = "redis.call('hget', KEYS[1], 'mode') ~= 'write'"
    took = "redis.call('hset', KEYS[1], 'mode', 'read')"


KINDS = {
    "lock": PythonLock,
    "redlock": Redlock,
    "redisson": Redisson,
    "redisson-write": RedissonWrite,
    "redisson-read": RedissonRead,
}


def make_lock(kind, key, servers):
    name, _, lifetime = kind.partition(":")
    return KINDS[name](key, float(lifetime) if lifetime else None, servers)


def hold(lock):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    lock.acquire()
    if getattr(lock, "woken", 0):
        print("woken", flush=True)
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
