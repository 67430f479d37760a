#!/usr/bin/python3
"""What the tests of the lease need: one clock for all hosts, in milliseconds, and holders that ask all the time.

lease.py now                the time
lease.py signal PID SIGNAL AT
                            sends the signal (as STOP) at that time
lease.py list AT FOLDER...  lists the folders at that time
lease.py hold FILE KIND [AT]
                            takes the lock with flock or excl, not before the time AT, and prints "granted TIME"; then
                            calls fsync and write every 10 ms (KIND "write" or "fsync": flock, and nothing but that); prints the first error as "fenced ERRNO LAST TIME", where LAST is when the
                            last call began that succeeded, and "revived TIME" if a call succeeds after that; if the
                            lock can't be taken: "refused ERRNO TIME", and the end
lease.py late FILE GO RESOURCE
                            takes the lock, proves that it is held, waits for the file GO and then appends a line to
                            RESOURCE
lease.py reads HOST:PORT PATH FILE
                            connects to the server; when FILE exists, prints how many children it sees
"""

import errno
import fcntl
import os
import signal
import sys
import time


def now():
    """CLOCK_MONOTONIC: the same for all processes, and nobody sets it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


def wait_for(moment):
    while now() < moment:
        time.sleep(max(0, moment - now()) / 1000)


def send_signal(pid, name, moment):
    wait_for(int(moment))
    os.kill(int(pid), signal.Signals["SIG" + name])
    print("sent", now(), flush=True)


def list_folders(moment, *folders):
    wait_for(int(moment))
    for folder in folders:
        os.listdir(folder)
    print("listed", now(), flush=True)


def hold(path, kind, moment="0"):
    wait_for(int(moment))
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if kind == "excl" else 0), 0o666)
        if kind != "excl":
            fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        sys.exit(f"refused {errno.errorcode[error.errno]} {now()}")
    print("granted", now(), flush=True)
    fenced = False
    last = 0
    calls = []
    if kind != "write":
        calls.append(lambda: os.fsync(fd))
    if kind != "fsync":
        calls.append(lambda: os.pwrite(fd, b"mine", 0))
    while True:
        for call in calls:
            begin = now()
            try:
                call()
                last = begin
                if fenced:
                    print("revived", now(), flush=True)
            except OSError as error:
                if not fenced:
                    print("fenced", errno.errorcode[error.errno], last, now(), flush=True)
                fenced = True
        time.sleep(0.01)


def late(path, go, resource):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.fsync(fd)
    print("granted", now(), flush=True)
    while not os.path.exists(go):
        time.sleep(0.01)
    with open(resource, "a", encoding="ascii") as file:
        print("late", file=file)
    print("wrote", now(), flush=True)


def reads(address, path, file):
    from kazoo.client import KazooClient

    client = KazooClient(address, timeout=30)
    client.start(timeout=90)
    print("connected", flush=True)
    while not os.path.exists(file):
        time.sleep(0.01)
    print("children", len(client.get_children(path)), flush=True)


COMMANDS = {"now": lambda: print(now()), "signal": send_signal, "list": list_folders, "hold": hold, "late": late, "reads": reads}
if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]](*sys.argv[2:])
