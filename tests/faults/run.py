#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same faults for dlockfs and for what people use instead; see run.sh, which starts this with the folders and programs."""

import argparse
import glob
import itertools
import json
import mmap
import os
import random
import shutil
import signal
import sys
import threading
import time

import check
import nemesis
import servers
import worker
from hosts import DlockfsDaemon, GlusterDaemon, Host, Worker
from network import Network
from register import Register
from session import T

HOSTS = ("A", "B", "C")
WORKERS = 2  # on each
PATIENCE_S = 5 * T  # for a lock, once nothing goes wrong any more
AFTER_S = 0.3  # a fault, who held goes on holding, as somebody who has more to do
GRACE_S = 2 * T  # after a fault, in which a loss is due to it


class Contender:
    """`promised` is what it promises to survive without two holders at once, of its faults; only that of dlockfs is asked for.
    `store` is how the store is named of who mounts it, with %s for the addresses, and `settings` what else has to be said of it."""

    def __init__(self, label, service, kind, agent=False, but=(), store="", settings=()):
        self.label = label
        self.service = service
        self.kind = kind
        self.agent = agent
        self.store = store
        self.settings = settings
        self.promised = [fault for fault in self.faults() if fault not in but]

    def faults(self):
        agents = nemesis.AGENT_FAULTS if self.agent else ()
        guards = nemesis.GUARD_FAULTS + nemesis.WHOLE if self.store else ()
        possible = ("calm", *nemesis.HOST_FAULTS, *agents, *guards, *self.service.faults)
        return [fault for fault in nemesis.FAULTS if fault in possible]


# What etc/doc/safety.md and etc/doc/redis.md say that dlockfs cannot do.
FROZEN = ("host-stop",)
SET_BACK = ("all-wipe", "backup", "clock")
# With one of two replicas that has to have a lock, the other one may be promoted.
PROMOTED = ("leader-cut", "leader-kill", "leader-stop", "leader-move", "leader-disk", "disk", "all-kill")
CONTENDERS = {
    "dlockfs-zookeeper": Contender(
        "dlockfs, ZooKeeper", servers.ZooKeeper, "Dlockfs", agent=True, but=FROZEN, store="zookeeper://%s/dlockfs"
    ),
    "dlockfs-etcd": Contender("dlockfs, etcd", servers.Etcd, "Dlockfs", agent=True, but=FROZEN, store="etcd://%s/dlockfs"),
    "dlockfs-redis": Contender(
        "dlockfs, Redis", servers.Redis, "Dlockfs", agent=True, but=FROZEN + SET_BACK, store="redis://%s/dlockfs"
    ),
    "dlockfs-sentinel": Contender(
        "dlockfs, Redis, Sentinel",
        servers.ReplicatedRedis,
        "Dlockfs",
        agent=True,
        but=FROZEN + SET_BACK + PROMOTED,
        store="redis+sentinel://%s/main/dlockfs",
        settings=("redis_replicas = 1",),
    ),
    "dlockfs-five": Contender(
        "dlockfs, five of Redis", servers.FiveRedis, "DlockfsNoTokens", agent=True, but=FROZEN + SET_BACK, store="redis://%s/dlockfs"
    ),
    "curator": Contender("Curator InterProcessMutex", servers.ZooKeeper, "Curator"),
    "kazoo": Contender("kazoo Lock", servers.ZooKeeper, "Kazoo"),
    "etcd-api": Contender("etcd lock API", servers.Etcd, "EtcdApi"),
    "etcdctl": Contender("etcdctl lock", servers.Etcd, "EtcdctlLock", agent=True),
    "redis-py": Contender("redis-py Lock", servers.Redis, "RedisLock"),
    "redis-sentinel": Contender("redis-py Lock, Sentinel", servers.ReplicatedRedis, "RedisSentinelLock"),
    "redlock": Contender("Redlock, five", servers.FiveRedis, "Redlock"),
    "postgresql": Contender("PostgreSQL advisory lock", servers.PostgreSQL, "Postgres"),
    "glusterfs": Contender("flock on GlusterFS", servers.GlusterFS, "GlusterFlock", agent=True),
}
CLOCKS = (0.99, 1.0, 1.01)  # how fast those of the hosts run under the fault drift


class Stalls:
    """How late a thread was woken at most that asked to be every 0.05 seconds: what a busy machine does to all that runs on it."""

    def __init__(self):
        self.longest_s = 0.0
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        before = time.monotonic()
        while not self.ended.wait(0.05):
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - before - 0.05)
            before = now


class Cell:
    """A contender under faults of a kind: one history."""

    def __init__(self, arena, fault, seed, rounds):
        self.arena = arena
        self.fault = fault
        self.seed = seed
        self.rounds = rounds
        self.service = arena.service
        self.network = arena.network
        self.random = random.Random(f"{fault} {seed}")
        self.folder = f"{arena.folder}/history"
        self.events = []
        self.places = {}  # how far each worker's file was read
        self.grants = []  # of the lock `one`: when, and which host

    def note(self, call, value=""):
        event = {"time": time.monotonic_ns(), "process": "nemesis", "host": "", "type": "info", "f": call, "lock": "", "value": value}
        self.events.append(event)

    def note_killed(self, process, when):
        self.events.append({"time": when, "process": process, "host": "", "type": "info", "f": "killed", "lock": ""})

    def read(self):
        """What the workers have written so far."""
        events = list(self.events)
        for file in glob.glob(f"{self.folder}/*"):
            with open(file, encoding="utf-8") as lines:
                events += [json.loads(line) for line in lines if line.endswith("\n")]
        return sorted(events, key=lambda event: event["time"])

    def granted(self, since):
        """The hosts that were granted the lock `one` since then."""
        for name in glob.glob(f"{self.folder}/*"):
            with open(name, "rb") as file:
                file.seek(self.places.get(name, 0))
                lines = file.read()
            lines = lines[: lines.rfind(b"\n") + 1]
            self.places[name] = self.places.get(name, 0) + len(lines)
            for line in lines.splitlines():
                if b'"acquire"' in line:
                    event = json.loads(line)
                    if event["type"] == "ok" and event["lock"] == "one":
                        self.grants.append((event["time"], event["host"]))
        return {host for time, host in self.grants if time > since}

    def await_grants(self, seconds):
        since, end = time.monotonic_ns(), time.monotonic() + seconds
        while len(self.granted(since)) < len(HOSTS) and time.monotonic() < end:
            self.arena.revive()
            time.sleep(0.2)

    def holder(self):
        """Who holds the lock `one`, and goes on while the fault is on; or anybody, if nobody gets it."""
        end = time.monotonic() + PATIENCE_S
        workers = [worker for host in self.arena.hosts for worker in host.workers]
        while time.monotonic() < end:
            for each in workers:
                if self.arena.witness[each.slot] == 1:
                    return each
            time.sleep(0.005)
        return workers[0]

    def do(self):
        """Returns what was found."""
        arena = self.arena
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        arena.register.clear()
        arena.set_clocks(CLOCKS if self.fault == "drift" else None)
        arena.revive()
        arena.begin(self.seed)
        stalls = Stalls()
        self.await_grants(2 * PATIENCE_S)
        possible = [fault for fault in arena.faults if fault != "calm"]
        actor = nemesis.Nemesis(self)
        for fault, seconds in nemesis.plan(self.fault, self.seed, self.rounds, possible):
            if fault == "calm":
                actor.calm(seconds, None)
                continue
            arena.witness[0] = worker.FAULT
            holder = self.holder()
            self.note("begin", f"{fault} {seconds} {holder.name}")
            actor.inflict(fault, seconds, holder)
            self.note("end")
            time.sleep(AFTER_S)
            arena.witness[0] = worker.WORK
            self.await_grants(PATIENCE_S)
        self.note("calm")
        time.sleep(1)
        arena.end(PATIENCE_S)
        self.note("over")
        stalls.ended.set()
        arena.release()
        arena.set_clocks(None)
        events = self.read()
        with open(f"{arena.output}/{arena.key}.{self.fault}.{self.seed}.jsonl", "w", encoding="utf-8") as file:
            for event in events:
                print(json.dumps(event), file=file)
        counts, found = check.check(events, GRACE_S, PATIENCE_S - 1)
        return {**counts, "stall_s": stalls.longest_s}, found


class Arena:
    """The hosts and the servers of a contender."""

    def __init__(self, key, network, options):
        self.key = key
        self.contender = CONTENDERS[key]
        self.folder = f"{options.folder}/{key}{network.count}"
        self.output = options.output
        os.makedirs(f"{self.folder}/history")
        self.network = network
        self.hosts = [Host(name, self.network.machine(name), self.folder) for name in HOSTS]
        self.service = self.contender.service(self.network, self.folder, options.clock)
        self.register = Register(f"{self.folder}/register")
        with open(f"{self.folder}/witness", "wb") as file:
            file.write(bytes(1 + len(HOSTS) * WORKERS))
        with open(f"{self.folder}/witness", "r+b") as file:
            self.witness = mmap.mmap(file.fileno(), 0)
        self.faults = self.contender.promised if options.promised else self.contender.faults()
        self.options = options
        self.clocks = None

    def start(self):
        self.service.start()
        if "backup" in self.contender.service.faults:
            self.service.save()
        for host in self.hosts:
            host.daemon = self.daemon(host)
            if host.daemon:
                host.daemon.start()

    def daemon(self, host):
        """Of a contender that is a file system."""
        if self.contender.store:
            store = self.contender.store % ",".join(self.service.addresses)
            return DlockfsDaemon(host, self.options.dlockfs, store, self.contender.settings)
        return GlusterDaemon(host, self.service) if self.contender.kind == "GlusterFlock" else None

    def set_clocks(self, rates):
        """Of the hosts' daemons, which are started anew for that; None: all are right."""
        if rates == self.clocks:
            return
        for host, rate in zip(self.hosts, rates or [1.0] * len(self.hosts)):
            host.daemon.end()
            host.daemon.environment = {} if rate == 1.0 else {"LD_PRELOAD": self.options.skew, "TEST_CLOCK_RATE": str(rate)}
            host.daemon.start()
        self.clocks = rates

    def revive(self):
        """Daemons that have ended, as a service manager would. Workers never end by themselves but by a mistake."""
        for host in self.hosts:
            for each in host.workers:
                if each.process.poll() == 1:
                    with open(f"{self.folder}/{each.name}.out", encoding="utf-8") as output:
                        raise servers.NotInTime(f"{each.name} has ended: {output.read().strip()[-200:]}")
            if host.daemon and host.daemon.process.poll() is not None:
                host.daemon.unmount()
                host.daemon.start()

    def begin(self, seed):
        """A history."""
        for each in range(len(self.witness)):
            self.witness[each] = worker.WORK
        config = {"seed": seed, "kind": self.contender.kind, "servers": self.service.addresses, "folder": self.folder}
        config["step_s"] = self.options.step
        config["java"] = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self.options.classpath]
        slot = 0
        for host in self.hosts:
            host.workers = []
            for number in range(1, WORKERS + 1):
                slot += 1
                host.workers.append(Worker(host, number, slot, config))
                host.workers[-1].start()

    def end(self, seconds):
        """The workers end once their calls have; those that wait longer are left."""
        self.witness[0] = worker.END
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and any(each.process.poll() is None for host in self.hosts for each in host.workers):
            self.revive()
            time.sleep(0.05)

    def release(self):
        for host in self.hosts:
            for each in host.workers:
                each.kill()

    def close(self):
        self.release()
        for host in self.hosts:
            if host.daemon:
                host.daemon.end()
        self.service.stop()
        self.network.clear()


def show(key, fault, seed, counts, found):
    values = " ".join(f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}" for name, value in counts.items())
    print(f"{time.strftime('%H:%M:%S')} {key} {fault} seed {seed}: {values}", flush=True)
    for text in found[:12]:
        print(f"    {text}", flush=True)


class Player:
    """Plays the histories of one contender, one after the other: of all seeds, or of each `parts`-th, as others play the rest."""

    def __init__(self, options, network):
        self.options = options
        self.network = network
        self.arena = None
        self.bad = 0
        contender = CONTENDERS[options.contender]
        self.possible = [*(contender.promised if options.promised else contender.faults()), "mix"]
        self.results = f"{options.output}/results.jsonl"

    def cells(self):
        """The faults and seeds, until the time is over where there is one."""
        options = self.options
        wanted = options.faults.split(",") if options.faults else self.possible[:-1]
        end = time.monotonic() + 60 * options.minutes
        first = options.seed + options.part - 1
        seeds = itertools.count(first, options.parts) if options.minutes else range(first, options.seed + options.seeds, options.parts)
        done = self.done() if options.go_on else set()
        for seed, fault in ((seed, fault) for seed in seeds for fault in wanted):
            if options.minutes and time.monotonic() > end:
                return
            if fault in self.possible and (fault, seed) not in done:
                yield fault, seed

    def done(self):
        """What the results have already."""
        if not os.path.exists(self.results):
            return set()
        with open(self.results, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return {(row["fault"], row["seed"]) for row in rows if row["contender"] == self.options.contender}

    def play(self):
        for fault, seed in self.cells():
            try:
                self.play_one(fault, seed)
            except (servers.NotInTime, check.Broken) as error:
                print(f"{self.options.contender} {fault} seed {seed}: {error}; goes on with new servers", flush=True)
                self.bad += 1
                self.close()

    def play_one(self, fault, seed):
        key, options = self.options.contender, self.options
        if self.arena is None:
            self.arena = Arena(key, self.network, options)
            self.arena.start()
        counts, found = Cell(self.arena, fault, seed, options.rounds).do()
        show(key, fault, seed, counts, found)
        line = json.dumps({"contender": key, "fault": fault, "seed": seed, **counts}) + "\n"
        with open(self.results, "ab", buffering=0) as file:
            file.write(line.encode())  # in one piece, as others write, too
        self.bad += any(counts[name] for name in check.BAD)

    def close(self):
        if self.arena:
            self.arena.close()
        self.arena = None


def reap():
    """Goes on in a child. The first process of a namespace waits for those whose parents have ended, until that child has."""
    child = os.fork()
    while child:
        ended, status = os.wait()
        if ended == child:
            sys.exit(os.waitstatus_to_exitcode(status) & 255)


def main():
    if sys.argv[1:] == ["--list"]:
        print(*(f"{key}: {contender.label}" for key, contender in CONTENDERS.items()), sep="\n")
        return
    parser = argparse.ArgumentParser()
    for name in ("dlockfs", "clock", "skew", "classpath", "folder", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--contender", required=True, choices=CONTENDERS)
    parser.add_argument("--faults", default="")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--step", type=float, default=0.01)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--continue", dest="go_on", action="store_true")
    parser.add_argument("--promised", action="store_true")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    if os.getpid() == 1:
        reap()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    network = Network()
    player = Player(options, network)
    try:
        player.play()
    finally:
        player.close()
        network.close()
    sys.exit(1 if options.strict and player.bad else 0)


if __name__ == "__main__":
    main()
