#!/usr/bin/python3
"""Calls that do not wait, on all mounts at one moment: together.py ROUNDS JOB-MS SERVER/ROOT MOUNT...

For each round one process for each mount asks for the lock by flock(LOCK_NB); who gets it sleeps for the job's time, and unlocks. Prints
on how many mounts the job ran, and how long the refusals took; then how long the same number of plain clients needs to know."""
import fcntl
import os
import statistics
import sys
import time

from kazoo.client import KazooClient

AHEAD_S = 0.3  # for what has to be started before the moment comes


def ask(path, moment, job_s):
    """Returns "ran" or "refused", and after how many seconds that was known."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    time.sleep(max(0, moment - time.monotonic()))
    begin = time.monotonic()
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "refused", time.monotonic() - begin
    took = time.monotonic() - begin
    time.sleep(job_s)
    return "ran", took


def play(mounts, job_s):
    """One round; returns how often the job ran, and the times of refusals."""
    moment = time.monotonic() + AHEAD_S
    reads = []
    for mount in mounts:
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            os.write(write, "{} {}".format(*ask(f"{mount}/job", moment, job_s)).encode())
            os._exit(0)
        os.close(write)
        reads.append(read)
    results = []
    for read in reads:
        with os.fdopen(read) as file:
            results.append(file.read().split())
    for _ in mounts:
        os.wait()
    return sum(word == "ran" for word, _ in results), [float(took) for word, took in results if word == "refused"]


def plain(server, count):
    """Seconds until each of so many clients, which make their claims at once, knows whether it is first."""
    clients = [KazooClient(server) for _ in range(count)]
    for client in clients:
        client.start()
    clients[0].ensure_path("/plain")
    times = []
    for _ in range(5):
        begin = time.monotonic()
        made = [client.create_async("/plain/n-", ephemeral=True, sequence=True) for client in clients]
        listed = []
        for client, each in zip(clients, made):
            each.get(timeout=60)
            listed.append(client.get_children_async("/plain"))
        for each in listed:
            each.get(timeout=60)
            times.append(time.monotonic() - begin)
        for client, each in zip(clients, made):
            client.delete(each.get(timeout=60))
    for client in clients:
        client.stop()
        client.close()
    return times


def words(times):
    return f"median {1000 * statistics.median(times):.1f} ms, last {1000 * max(times):.1f} ms" if times else "none"


def main():
    rounds, job_ms = int(sys.argv[1]), float(sys.argv[2])
    server, mounts = sys.argv[3].partition("/")[0], sys.argv[4:]
    play(mounts, 0)  # each has used the lock
    time.sleep(1)
    runs, refusals = [], []
    for _ in range(rounds):
        ran, times = play(mounts, job_ms / 1000)
        runs.append(ran)
        refusals += times
        time.sleep(0.5)
    print(f"{len(mounts)} hosts, job of {job_ms:g} ms: it ran on {' '.join(map(str, runs))} of them")
    print(f"refused: {words(refusals)}")
    print(f"plain clients: {words(plain(server, len(mounts)))}")


main()
