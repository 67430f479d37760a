# SPDX-License-Identifier: Apache-2.0
"""slots.py HOST:PORT SLOTS CLIENTS SECONDS TURNS CLASSPATH LOCK...: see slots.sh. A process for each LOCK has its part of the
clients."""

import fcntl
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time

from kazoo.client import KazooClient

import server

address = sys.argv[1]
slots, clients, seconds, turns = map(int, sys.argv[2:6])
classpath = sys.argv[6]
locks = sys.argv[7:]
counts = [clients // len(locks) + (i < clients % len(locks)) for i in range(len(locks))]


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
    hosts = [multiprocessing.Process(target=host, args=(kind, lock, count, ready, go, total)) for lock, count in zip(locks, counts)]
    for process in hosts:
        process.start()
    ready.wait(60)
    before = server.requests(address)
    go.set()
    for process in hosts:
        process.join()
    return total.value / seconds, (server.requests(address) - before) / max(total.value, 1)


def measure_java():
    """The same for Curator's semaphore."""
    command = ["java", "-Xmx1g", "-Xss256k", "-XX:+UseSerialGC", "-cp", classpath, "JavaLeases", address, str(slots)]
    hosts = [
        subprocess.Popen(command + [str(count), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for count in counts
    ]
    for process in hosts:
        process.stdout.readline()
    before = server.requests(address)
    for process in hosts:
        process.stdin.write("\n")
        process.stdin.flush()
    total = sum(int(process.communicate()[0]) for process in hosts)
    return total / seconds, (server.requests(address) - before) / max(total, 1)


results = {"dlockfs, flock": [], "kazoo, Semaphore": [], "Curator, InterProcessSemaphoreV2": []}
for _ in range(turns):
    for label, values in zip(results, (measure("flock"), measure("kazoo"), measure_java())):
        results[label].append(values)
for label, values in results.items():
    rate, requests = (statistics.median(column) for column in zip(*values))
    print(f"{label:34} {rate:8.0f} locks/s, {requests:5.1f} requests each")
