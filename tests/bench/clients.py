# SPDX-License-Identifier: Apache-2.0
"""What the drivers (driver.py) in Python have in common: `serve(connect)`.

Clients are threads of up to PROCESSES processes. In each process connect() gives an object with

    lock(name)      a lock for one client: acquire(shared, wait_s) returns whether it was acquired, wait_s None: waits
                    for ever; release()
    waiters(name)   how many claims stand for the lock, or None where nobody can tell
    close()
"""

import os
import random
import sys
import threading
import time
import traceback

from driver import end_with_parent

PROCESSES = 32
WAITERS_LIMIT_S = 30


def now_us():
    return time.monotonic_ns() // 1000


class Connection:
    """For locks that share nothing in a process, and that nobody can tell the waiters of."""

    def __init__(self, lock):
        self.lock = lock

    def waiters(self, name):
        return None

    def close(self):
        pass


class Order:
    def __init__(self, line):
        self.verb, *pairs = line.split()
        self.numbers = {key: int(number) for key, number in (pair.split("=") for pair in pairs)}

    def __getattr__(self, key):
        return self.numbers.get(key, {"clients": 1, "cycles": 1000, "seconds_ms": 1000}.get(key, 0))


def cycle(lock, order, record, hold_us):
    shared = bool(order.shared) and random.random() * 100 < order.shared
    asked = now_us()
    if not lock.acquire(shared, order.wait_ms / 1000 if order.wait_ms else None):
        now = now_us()
        record("t", asked, now, now, now)
        return
    granted = now_us()
    if hold_us:
        time.sleep(hold_us / 1e6)
    releasing = now_us()
    lock.release()
    record("s" if shared else "x", asked, granted, releasing, now_us())


def name_of(order, client):
    return f"own{client}" if order.own else "job"


def run_client(order, lock, record):
    end = now_us() + order.seconds_ms * 1000
    for _ in range(order.cycles):
        if now_us() >= end:
            break
        cycle(lock, order, record, order.hold_us)


def queue_client(order, lock, record):
    cycle(lock, order, record, 0)


class Worker:
    """A process with some of the clients. It writes a byte when it is ready, and begins when `go` ends."""

    def __init__(self, connect, order, work, clients, go):
        ready, self.ready = os.pipe()
        output, self.output = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            end_with_parent()
            try:
                os.close(go[1])
                self._run(connect, order, work, clients, go[0])
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        os.close(self.ready)
        os.close(self.output)
        self.ready, self.output = ready, output

    def _run(self, connect, order, work, clients, go):
        connection = connect()
        locks = [connection.lock(name_of(order, client)) for client in clients]
        warm = connection.lock(f"warm{os.getpid()}")
        warm.acquire(False, None)
        warm.release()
        os.write(self.ready, b"r")
        os.read(go, 1)
        records = [[] for _ in clients]
        failed = []

        def client(number):
            try:
                work(order, locks[number], lambda *record: records[number].append(record))
            except BaseException:
                failed.append(number)
                traceback.print_exc()

        threads = [threading.Thread(target=client, args=[number]) for number in range(1, len(clients))]
        for thread in threads:
            thread.start()
        client(0)
        for thread in threads:
            thread.join()
        if failed:
            raise RuntimeError(f"{len(failed)} clients failed")
        with os.fdopen(self.output, "w") as output:
            for number, own in zip(clients, records):
                for record in own:
                    print(number, *record, file=output)
        connection.close()

    def await_ready(self):
        if not os.read(self.ready, 1):
            sys.exit(1)
        os.close(self.ready)

    def finish(self):
        with os.fdopen(self.output) as output:
            text = output.read()
        if os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) != 0:
            sys.exit(1)
        return text


def start(connect, order, work):
    """Returns workers that are ready, and what lets them go."""
    count = min(order.clients, PROCESSES)
    go = os.pipe()
    workers = [Worker(connect, order, work, range(first, order.clients, count), go) for first in range(count)]
    os.close(go[0])
    for worker in workers:
        worker.await_ready()
    return workers, lambda: os.close(go[1])


def finish(workers):
    for worker in workers:
        sys.stdout.write(worker.finish())


def run(connect, order):
    workers, let_go = start(connect, order, run_client)
    let_go()
    finish(workers)


def queue(connect, order):
    workers, let_go = start(connect, order, queue_client)
    connection = connect()
    first = connection.lock("job")
    first.acquire(False, None)
    let_go()
    limit = time.monotonic() + WAITERS_LIMIT_S
    while (waiting := connection.waiters("job")) is not None and waiting < order.clients:
        if time.monotonic() > limit:
            sys.exit(f"{waiting} of {order.clients} clients wait after {WAITERS_LIMIT_S} s")
        time.sleep(0.01)
    time.sleep(order.hold_us / 1e6)
    first.release()
    finish(workers)
    connection.close()


def serve(connect):
    verbs = {"run": run, "queue": queue}
    for line in sys.stdin:
        order = Order(line)
        verbs[order.verb](connect, order)
        print(flush=True)
