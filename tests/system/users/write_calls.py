"""Calls of an ordinary user that make the servers write: write_calls.py USER-ID DIRECTORY KIND COUNT. KIND is flock, excl (exclusive
open), signal (flock, each interrupted once by a signal, until one says EINTR), texts (4 KiB in a new file) or ranges (one more byte is
locked). Prints the milliseconds that they took."""
import fcntl
import os
import signal
import sys
import time

user, directory, kind, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
os.setgroups([])
os.setgid(user)
os.setuid(user)


class Interrupted(Exception):
    pass


def on_alarm(*_):
    raise Interrupted


signal.signal(signal.SIGALRM, on_alarm)
path = f"{directory}/{kind}-{user}"
begin = time.monotonic()
descriptor = None if kind in ("excl", "texts") else os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
interrupted = False
for number in range(count):
    if kind == "excl":
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        os.unlink(path)
        continue
    if kind == "texts":
        text = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        os.write(text, bytes(4096))
        os.close(text)
        os.unlink(path)
        continue
    if kind == "ranges":
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 2 * number)
        continue
    if kind == "signal":
        signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except Interrupted:
        interrupted = True
        break
    signal.setitimer(signal.ITIMER_REAL, 0)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
if kind == "signal" and not interrupted:
    sys.exit("no call was interrupted")
print(int(1000 * (time.monotonic() - begin)), flush=True)
