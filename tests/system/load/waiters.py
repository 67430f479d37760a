#!/usr/bin/python3
"""waiters.py HOST:PORT ZNODE N GO LOCK...: N processes wait for one lock, and must get it in order.

They queue one after the other, taking turns with the lock's names on different hosts, half by flock and
half by exclusive open. When the file GO exists, the first is let go. Each that is granted writes its
number to a pipe and lets go. Prints "N wait", then "in order" or what was seen instead.
"""

import fcntl
import os
import select
import sys
import time

import zookeeper

address, znode, number, go = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
locks = sys.argv[5:]


def take(index):
    lock = locks[index % len(locks)]
    if index // len(locks) % 2:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


reader, writer = os.pipe()
first = take(0)
children = []
# Forked before the client of ZooKeeper has threads; each waits for its turn to queue.
turns = []
for index in range(number):
    turn_reader, turn_writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(first)
        os.read(turn_reader, 1)
        fd = take(index)
        os.write(writer, index.to_bytes(4, "little"))
        os.close(fd)
        os._exit(0)
    os.close(turn_reader)
    children.append(child)
    turns.append(turn_writer)

client = zookeeper.connect(address)
for index, turn in enumerate(turns):
    os.write(turn, b"x")
    zookeeper.wait_claims(client, znode, index + 2, 30)
print(number, "wait")

while not os.path.exists(go):
    time.sleep(0.01)
if select.select([reader], [], [], 0)[0]:
    sys.exit("somebody did not wait")
os.close(first)
seen = []
while len(seen) < number:
    if not select.select([reader], [], [], 30)[0]:
        sys.exit(f"nobody follows after {seen[-5:]}")
    seen.append(int.from_bytes(os.read(reader, 4), "little"))
for child in children:
    os.waitpid(child, 0)
print("in order" if seen == list(range(number)) else f"order: {seen}")
client.stop()
