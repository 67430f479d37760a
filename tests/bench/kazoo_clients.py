# SPDX-License-Identifier: Apache-2.0
"""kazoo_clients.py HOST:PORT: a driver for kazoo's Lock."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

import clients


class Lock:
    def __init__(self, client, path):
        self.lock = client.Lock(path)

    def acquire(self, shared, wait_s):
        try:
            return self.lock.acquire(timeout=wait_s)
        except LockTimeout:
            return False

    def release(self):
        self.lock.release()


class Connection:
    def __init__(self):
        self.client = KazooClient(sys.argv[1], timeout=30)
        self.client.start(30)
        self.path = "/kazoo"

    def lock(self, name):
        return Lock(self.client, f"{self.path}/{name}")

    def waiters(self, name):
        return len(self.client.get_children(f"{self.path}/{name}")) - 1

    def close(self):
        self.client.stop()
        self.client.close()


clients.serve(Connection)
