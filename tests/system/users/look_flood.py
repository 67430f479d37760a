#!/usr/bin/python3
"""look_flood.py HOST:PORT MOUNT UID: that user looks at all queues again and again, several programs at a time.

Each look shows what its program has locked before. Fails if the server gets more requests than looks cost that come one after
the other, with pauses between them; prints what it got.
"""

import fcntl
import subprocess
import sys
import time

import server

LOCKS, LOOKERS, LOOKS = 150, 4, 3
LOOK = """import fcntl, sys
mount, name = sys.argv[1:]
while True:
    with open(f"{mount}/{name}", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(f"{mount}/.dlockfs/queues") as queues:
            print(f"lock={name} " in queues.read(), flush=True)
"""
address, mount, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])


def look():
    with open(mount + "/.dlockfs/queues") as queues:
        return queues.read()


held = []
for number in range(LOCKS):
    held.append(open(f"{mount}/held{number}", "a"))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
before = server.requests_settled(server.ZooKeeper(address))
if look().count("\nposition=") != LOCKS:
    sys.exit("not all locks are shown")
cost = server.requests_settled(server.ZooKeeper(address)) - before
if cost < 2 * LOCKS:
    sys.exit(f"a look has cost {cost} requests: too little for this")

begin, before = time.monotonic(), server.requests(address)
lookers = [
    subprocess.Popen([sys.executable, "-c", LOOK, mount, f"own{number}"], user=uid, group=uid, extra_groups=[],
                     stdout=subprocess.PIPE, text=True)
    for number in range(LOOKERS)
]
try:
    for looker in lookers:
        for _ in range(LOOKS):
            line = looker.stdout.readline()
            if line != "True\n":
                sys.exit(f"a look does not show what was locked before it: {line!r}")
    found = server.requests(address) - before
    spent_ms = (time.monotonic() - begin) * 1000
finally:
    for looker in lookers:
        looker.kill()
        looker.wait()
# One look comes before the first pause, and one may be under way. What the lookers lock is a little more.
allowed = 2 * cost + 1.2 * spent_ms + 20 * LOOKERS * LOOKS
print(f"{found} requests in {spent_ms:.0f} ms; a look costs {cost}")
if found > allowed:
    sys.exit(f"more than {allowed:.0f} requests")
