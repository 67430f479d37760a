# SPDX-License-Identifier: Apache-2.0
"""etcd_clients.py HOST:PORT: a driver for etcd's lock API, through its JSON gateway. Each client has a connection that
stays open, and a lease."""

import base64
import http.client
import json
import sys

import clients

LEASE_S = 120


def encode(text):
    return base64.b64encode(text.encode()).decode()


class Lock:
    def __init__(self, name):
        self.connection = http.client.HTTPConnection(sys.argv[1])
        self.name = encode(name)
        self.lease = self.ask("/v3/lease/grant", TTL=LEASE_S)["ID"]
        self.key = None

    def ask(self, path, **values):
        self.connection.request("POST", path, json.dumps(values))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def acquire(self, shared, wait_s):
        self.key = self.ask("/v3/lock/lock", name=self.name, lease=self.lease)["key"]
        return True

    def release(self):
        self.ask("/v3/lock/unlock", key=self.key)


class Connection(clients.Connection):
    def __init__(self):
        super().__init__(Lock)
        self.counter = Lock("counter")

    def waiters(self, name):
        answer = self.counter.ask("/v3/kv/range", key=encode(name + "/"), range_end=encode(name + "0"), count_only=True)
        return int(answer.get("count", 0)) - 1


clients.serve(Connection)
