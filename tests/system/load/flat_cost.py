#!/usr/bin/python3
"""flat_cost.py HOST:PORT MOUNT-A MOUNT-B...: what waiters cost the server, by its own count, for queues of several
lengths: the same for all of them. Prints "flat", or what was not.

The session timeout of the hosts is 10 minutes: only a few heartbeats and pings fall into a measurement.
"""

import fcntl
import itertools
import os
import queue
import sys
import threading
import time

import server

address, mounts = sys.argv[1], dict(zip("ABCDEF", sys.argv[2:]))
TIMES = 10
HEARTBEATS = 6  # of all hosts, and pings, each 64th of the session timeout: see src/stores/zookeeper/lease.h
HEARTBEATS_S = 600 / 64
COUNTS = {
    "requests": "zk_packets_received",
    "watches": "zk_watch_count",
    "events": "zk_sum_node_deleted_watch_count",
    "other events": "zk_sum_node_changed_watch_count",
    "claims": "zk_ephemerals_count",
}


def counts():
    """Of the server, without the two questions for them."""
    counts.asked += 1
    metrics = server.metrics(address)
    found = {name: int(float(metrics[key])) for name, key in COUNTS.items()}
    found["requests"] -= counts.asked
    found["claims"] -= len(mounts)  # each host has an entry
    return found


counts.asked = 0


def hear(host, lock):
    """Until the host has heard all that the server has told it: an answer comes behind that. What it asks is not counted."""
    before = counts()["requests"]
    with open(f"{mounts[host]}/.dlockfs/locks/{lock}") as file:
        if f"lock={lock} " not in file.read():
            sys.exit(f"{host} knows nothing of {lock}")
    more = counts()["requests"] - before
    counts.asked += more


def wait_counts(**wanted):
    """Until there are so many claims, watches and so on."""
    end = time.monotonic() + 60
    while any((found := counts())[name] != number for name, number in wanted.items()):
        if time.monotonic() > end:
            sys.exit(f"{found} instead of {wanted}")
        time.sleep(0.002)


class Line:
    """Callers who wait for one lock, in the order in which they came."""

    def __init__(self, name):
        self.name, self.callers, self.left, self.granted = name, [], 0, queue.Queue()
        self.join("A")
        self.holder = self.granted.get(timeout=90)

    def call(self, host, go):
        with open(f"{mounts[host]}/{self.name}", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.granted.put(go)
            go.wait()

    def join(self, host):
        thread = threading.Thread(target=self.call, args=(host, threading.Event()), daemon=True)
        thread.start()
        self.callers.append(thread)
        self.left += 1

    def hand_over(self):
        self.holder.set()
        self.left -= 1
        self.holder = self.granted.get(timeout=90)

    def end(self):
        while self.left > 1:
            self.hand_over()
        self.holder.set()
        for thread in self.callers:
            thread.join()
        wait_counts(claims=0)


def expect(what, act, times, claims, requests, together=False, **others):
    """An act costs this, so many times. `claims`: so many more are there afterwards, and so on."""
    each = {"claims": claims, "requests": requests, "watches": 0, "events": 0, "other events": 0, **others}
    before, begin, done = counts(), time.monotonic(), 0
    while True:
        found = {name: count - before[name] for name, count in counts().items()}
        requests_more = found["requests"] - done * each["requests"]
        settled = all(found[name] == done * each[name] for name in each if name != "requests")
        if settled and requests_more >= 0 and done == times:
            break
        if time.monotonic() > begin + 90:
            sys.exit(f"{what}, {done} times: {found}, but each should cost {each}")
        for _ in range(times - done if together else done < times and settled):
            act()
            done += 1
    if requests_more > HEARTBEATS * (1 + (time.monotonic() - begin) / HEARTBEATS_S):
        sys.exit(f"{what}, {times} times: {found}, but each should cost {each}")


def waiters_of_one_host(length):
    line = Line(f"one-{length}")
    expect(f"{length} waiters placed together", lambda: line.join("A"), length, claims=1, requests=1, together=True)
    expect(f"one more behind {length}", lambda: line.join("A"), TIMES, claims=1, requests=1)
    expect(f"hand-over before {length}", line.hand_over, TIMES, claims=-1, requests=1)
    return line


def waiters_of_another_host(line, length):
    """Behind the one host's."""
    # create, list, two watches, and that of its own claim
    expect(f"another host behind {length}", lambda: line.join("B"), 1, claims=1, requests=5, watches=3)
    expect(f"one more of it behind {length}", lambda: line.join("B"), TIMES, claims=1, requests=1)
    expect(f"hand-over before {length} and another host", line.hand_over, TIMES, claims=-1, requests=1)
    with open(f"{mounts['A']}/{line.name}", "a") as file:
        expect(f"a call that does not wait, behind {length}", lambda: refused(file), TIMES, claims=0, requests=0)
    while line.left > TIMES + 3:
        line.hand_over()
    wait_counts(claims=TIMES + 3)
    # The other host learns that it is the next one, and lists; then that it has the lock.
    expect(f"the last but one of {length}", line.hand_over, 1, claims=-1, requests=2, watches=-1, events=1)
    expect(f"the last of {length}", line.hand_over, 1, claims=-1, requests=1, watches=-1, events=1)
    line.end()


def refused(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    sys.exit("a lock that others wait for was taken")


def hosts_in_turn(hosts, length):
    line = Line(f"turns-of-{len(hosts)}-{length}")
    others = len(hosts) - 1  # so many stand between two of one host
    watched = min(others, 2) + 1  # the nearest one, and the next in front of that; and its own

    def join():
        line.join(hosts[len(line.callers) % len(hosts)])

    # The first one of each host, but for the holder's; they know less.
    watches = counts()["watches"]
    for standing in range(1, others + 1):
        join()
        watches += min(standing + 1, watched)
        wait_counts(claims=standing + 1, watches=watches)
    # create, list, watches
    cost = {"claims": 1, "requests": 2 + watched, "watches": watched}
    expect(f"{hosts} take turns up to {length}", join, length, **cost)
    expect(f"one more behind {length} of {hosts} in turn", join, TIMES, **cost)
    # Those who came when fewer stood there.
    for _ in range(others):
        line.hand_over()
    wait_counts(claims=line.left)
    # delete; a list, where more stand in front than are watched
    cost = {"claims": -1, "requests": 1 + (others > 2), "watches": -watched, "events": watched}
    expect(f"hand-over from one of {hosts} before {length}", line.hand_over, TIMES, **cost)
    line.end()


def two_in_turn():
    """Each of two hosts queues again behind the other one as soon as it has released."""
    name, hosts = "to-and-fro", itertools.cycle("AB")
    opened = [open(f"{mounts[host]}/{name}", "a") for host in "AB"]
    for file in opened:  # what is known of a lock is kept as long as a file is open with which it was locked
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)
    wait_counts(claims=0)
    line = Line(name)
    line.join("B")
    wait_counts(claims=2)

    def turn():
        # That the lock is free, and that the queue has changed, are two messages. Who has not heard the second one yet when it queues
        # again watches its own claim instead, which costs more.
        for host in "AB":
            hear(host, name)
        line.hand_over()
        line.join(next(hosts))

    for _ in "ABAB":  # a host that has met one other one expects no more
        turn()
        wait_counts(claims=2)
    for host in "AABB":  # what a host sends on an answer has arrived when it has heard a second one
        hear(host, name)
    # create, list, a watch, delete: the list attends to the queue, so nobody's own claim is watched
    expect("a turn of two hosts", turn, TIMES, claims=0, requests=4, events=1)
    line.end()
    for file in opened:
        file.close()


two_in_turn()
for length in 20, 100, 1000:
    waiters_of_another_host(waiters_of_one_host(length), length)
for length in 10, 100:
    for hosts in "AB", "ABC", "ABCDEF":
        hosts_in_turn(hosts, length)
print("flat")
