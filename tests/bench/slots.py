# SPDX-License-Identifier: Apache-2.0
"""slots.py HOST:PORT SLOTS CLIENTS SECONDS TURNS LOCK...: see slots.sh. A process for each LOCK has its part of the clients."""

import fcntl
import multiprocessing
import os
import statistics
import sys
import threading
import time

from kazoo.client import KazooClient

import server

address = sys.argv[1]
slots, clients, seconds, turns = map(int, sys.argv[2:6])
locks = sys.argv[6:]


def flock_client(lock):
    def once():
        fd = os.open(lock, os.O_RDONLY | os.O_CREAT, 0o666)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.close(fd)

    return once


def kazoo_client(connection):
    semaphore = connection.Semaphore("/kazoo/semaphore", max_leases=slots)

    def once():
        semaphore.acquire()
        semaphore.release()

    return once


def host(kind, lock, count, ready, go, total):
    """Clients that take the lock again and again, each in a thread, until the time is over."""
    connection = None
    if kind == "kazoo":
        connection = KazooClient(address, timeout=30)
        connection.start(30)
    times = [0] * count
    end = [0.0]

    def client(number):
        once = flock_client(lock) if connection is None else kazoo_client(connection)
        ready.wait()
        go.wait()
        while time.monotonic() < end[0]:
            once()
            times[number] += time.monotonic() < end[0]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    end[0] = time.monotonic() + 3600
    go.wait()
    end[0] = time.monotonic() + seconds
    for thread in threads:
        thread.join()
    with total.get_lock():
        total.value += sum(times)
    if connection is not None:
        connection.stop()


def measure(kind):
    """How often the lock was had a second, and how many requests that took each time."""
    ready, go, total = multiprocessing.Barrier(clients + 1), multiprocessing.Event(), multiprocessing.Value("q", 0)
    counts = [clients // len(locks) + (i < clients % len(locks)) for i in range(len(locks))]
    hosts = [multiprocessing.Process(target=host, args=(kind, lock, count, ready, go, total)) for lock, count in zip(locks, counts)]
    for process in hosts:
        process.start()
    ready.wait(60)
    before = server.requests(address)
    go.set()
    for process in hosts:
        process.join()
    return total.value / seconds, (server.requests(address) - before) / max(total.value, 1)


results = {"dlockfs, flock": [], "kazoo, Semaphore": []}
for _ in range(turns):
    results["dlockfs, flock"].append(measure("flock"))
    results["kazoo, Semaphore"].append(measure("kazoo"))
for label, values in results.items():
    rate, requests = (statistics.median(column) for column in zip(*values))
    print(f"{label:18} {rate:8.0f} locks/s, {requests:5.1f} requests each")
