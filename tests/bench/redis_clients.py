# SPDX-License-Identifier: Apache-2.0
"""redis_clients.py HOST:PORT: a driver for locks in Redis as they are commonly made: SET NX PX with a random value, tried
again after 15 ms and a random time, and a script that deletes the key if it still has that value."""

import random
import sys
import time
import uuid

import redis

import clients

LEASE_MS = 30000
SLEEP_S = 0.015
RANDOM_S = 0.015
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


class Lock:
    def __init__(self, name):
        host, port = sys.argv[1].split(":")
        self.redis = redis.Redis(host, int(port))
        self.compare_and_delete = self.redis.register_script(RELEASE)
        self.name = name
        self.value = str(uuid.uuid4())

    def acquire(self, shared, wait_s):
        end = time.monotonic() + wait_s if wait_s else None
        while not self.redis.set(self.name, self.value, nx=True, px=LEASE_MS):
            if end and time.monotonic() > end:
                return False
            time.sleep(SLEEP_S + random.uniform(0, RANDOM_S))
        return True

    def release(self):
        if not self.compare_and_delete(keys=[self.name], args=[self.value]):
            raise RuntimeError("the lock was lost")


clients.serve(lambda: clients.Connection(Lock))
