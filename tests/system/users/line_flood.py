"""An ordinary user makes a daemon write lines for the log: line_flood.py USER-ID revoke MOUNT COUNT asks again and again for a lock
that is its own, `try` makes calls for such a lock that are refused, in four threads, and `take` MOUNT COUNT OTHER-MOUNT makes
lock files and takes them away on another host."""
import fcntl
import os
import re
import signal
import sys
import threading

REVOKE = 0x4100DF02

user, what, mount, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
os.setgroups([])
os.setgid(user)
os.setuid(user)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def hold(name):
    descriptor = os.open(f"{mount}/{name}", os.O_CREAT | os.O_RDWR, 0o666)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def revoke():
    name = f"revoke-{user}"
    held = hold(name)
    claim = re.search(r"claim=(\S+)", open(f"{mount}/.dlockfs/locks/{name}").read()).group(1)
    steered = os.open(f"{mount}/.dlockfs/locks/{name}", os.O_RDONLY)
    for _ in range(count):
        fcntl.ioctl(steered, REVOKE, claim.encode().ljust(256, b"\0"))
    os.close(held)


def refused():
    descriptor = os.open(f"{mount}/try", os.O_CREAT | os.O_RDWR, 0o666)
    for _ in range(count // 4):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        sys.exit("was granted")


def try_lock():
    held = hold("try")
    threads = [threading.Thread(target=refused) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(held)


def take():
    for number in range(count):
        os.close(os.open(f"{mount}/files/{number}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        os.unlink(f"{sys.argv[5]}/files/{number}")


{"revoke": revoke, "try": try_lock, "take": take}[what]()
print("done")
