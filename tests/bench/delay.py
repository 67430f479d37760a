#!/usr/bin/python3
"""delay.py ROUNDS CYCLES NAME=FOLDER,FOLDER...: cycles of lock and unlock by flock(2), each of the names in turn, so many rounds.

alone: one process in the first folder. one host: 8 processes in the first folder want one lock. two hosts: 4 in each of the first
two. For each, the median over the rounds of cycles a second, and the median time of a call that locks.
"""

import fcntl
import multiprocessing
import os
import statistics
import sys
import time


def cycle(path, cycles, start, results):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    start.wait()
    waits = []
    for _ in range(cycles):
        begin = time.monotonic()
        fcntl.flock(fd, fcntl.LOCK_EX)
        waits.append(time.monotonic() - begin)
        fcntl.flock(fd, fcntl.LOCK_UN)
    results.put(waits)
    os.close(fd)


def measure(folders, lock, cycles):
    """Returns cycles a second, and the times of all calls."""
    start = multiprocessing.Barrier(len(folders) + 1)
    results = multiprocessing.Queue()
    arguments = [(f"{folder}/{lock}", cycles // len(folders), start, results) for folder in folders]
    processes = [multiprocessing.Process(target=cycle, args=each) for each in arguments]
    for process in processes:
        process.start()
    start.wait()
    begin = time.monotonic()
    waits = [wait for _ in processes for wait in results.get(timeout=120)]
    seconds = time.monotonic() - begin
    for process in processes:
        process.join()
    return len(waits) / seconds, waits


def main():
    rounds, cycles = int(sys.argv[1]), int(sys.argv[2])
    named = [argument.rpartition("=") for argument in sys.argv[3:]]
    for workload, pick in (
        ("alone", lambda folders: folders[:1]),
        ("one host", lambda folders: folders[:1] * 8),
        ("two hosts", lambda folders: folders[:2] * 4),
    ):
        rates = {name: [] for name, _, _ in named}
        waits = {name: [] for name, _, _ in named}
        for number in range(rounds + 1):
            for name, _, folders in named:
                rate, took = measure(pick(folders.split(",")), workload.replace(" ", "-"), cycles)
                if number > 0:  # the first is to get warm
                    rates[name].append(rate)
                    waits[name] += took
        for name, _, _ in named:
            print(
                f"  {workload:10} {name:16} {statistics.median(rates[name]):7.0f} cycles/s"
                f"  {statistics.median(waits[name]) * 1000:7.2f} ms to lock",
                flush=True,
            )


main()
