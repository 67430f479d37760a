# SPDX-License-Identifier: Apache-2.0
"""Who takes part in which workload, as run.sh has written it down."""

import re
import shlex

from driver import Driver
import server


# By a word: what stands behind the keys of what their servers take at least, and the servers.
FLOORS = {"etcd": ("-etcd", "etcd"), "redis": ("-redis", "Redis")}


class Contender:
    def __init__(self, key, label, words, command):
        self.key = key
        self.label = label
        self.words = dict((word.split("=") + [""])[:2] for word in words.split())
        self.missing = self.words.pop("missing", None)
        self.floor, self.servers = next((found for word, found in FLOORS.items() if word in self.words), ("", "ZooKeeper"))
        self.driver = Driver(command)
        if self.missing is not None:
            self.missing = command[0]

    def takes_part(self, workload, size=0):
        """The number after a workload is the greatest size."""
        limit = self.words.get(workload)
        return limit is not None and (not limit or size <= int(limit))

    def fuse_requests(self):
        """What the kernel has asked the mount so far."""
        with open(self.words["mount"] + "/.dlockfs/metrics", encoding="ascii") as metrics:
            return sum(int(number) for number in re.findall(r"^dlockfs_fuse_requests_total{.*} (\d+)$", metrics.read(), re.M))


def load(file):
    """One a line: key, label, words and the command, or why the contender is missing, divided by tabs."""
    with open(file, encoding="utf-8") as lines:
        return [
            Contender(key, label, words, shlex.split(command) if "missing" not in words.split() else [command])
            for key, label, words, command in (line.rstrip("\n").split("\t") for line in lines)
        ]


class Counter:
    """Counts the requests that the servers get during a measurement."""

    def __init__(self, contender, address):
        self.servers = None
        if "zookeeper" in contender.words:
            self.servers = server.ZooKeeper(address)
        elif contender.words.get("etcd"):
            self.servers = server.Etcd(contender.words["etcd"])
        elif contender.words.get("redis"):
            self.servers = server.Redis(contender.words["redis"])
        self.fuse = contender if "mount" in contender.words else None
        self.requests = self.sets = self.fuse_requests = 0

    def __enter__(self):
        if self.fuse:
            first = self.fuse.fuse_requests()
            self.before_fuse = self.fuse.fuse_requests()
            self.own_fuse = self.before_fuse - first  # what it takes to ask
        if self.servers:
            self.before = self.servers.requests()
            self.before_sets = self.servers.sets()
        return self

    def __exit__(self, *error):
        if self.servers:
            self.requests += server.requests_settled(self.servers) - self.before - self.servers.QUESTION
            self.sets += self.servers.sets() - self.before_sets
        if self.fuse and not any(error):
            self.fuse_requests += self.fuse.fuse_requests() - self.before_fuse - self.own_fuse

    def per(self, cycles):
        """As values of a row."""
        values = {}
        if self.servers:
            values["requests"] = self.requests / max(cycles, 1)
            if isinstance(self.servers, server.Redis):
                values["sets"] = self.sets / max(cycles, 1)
        if self.fuse:
            values["fuse_requests"] = self.fuse_requests / max(cycles, 1)
        return values
