#!/usr/bin/python3
"""Counts under a lock that is a directory: mkdir_counter.py COUNTER PROCESSES STOP FOLDER...

So many processes for each folder increment the number in the file COUNTER, each time between mkdir(2) and rmdir(2) of "lock" in
that folder, until the file STOP exists. Prints how often they did; first, a line for each error other than EEXIST of mkdir(2).
"""

import os
import random
import sys
import time

counter, processes, stop, folders = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]


def increment():
    with open(counter, "r+", encoding="ascii") as file:
        number = int(file.read())
        time.sleep(0.001)
        file.seek(0)
        file.write(str(number + 1))


def count(folder):
    done = 0
    lock = folder + "/lock"
    while not os.path.exists(stop):
        try:
            os.mkdir(lock)
        except FileExistsError:
            time.sleep(random.uniform(0, 0.005))
            continue
        except OSError as error:
            os.write(1, f"mkdir: {error}\n".encode())
            time.sleep(0.05)
            continue
        increment()
        done += 1
        try:
            os.rmdir(lock)
        except OSError as error:
            os.write(1, f"rmdir: {error}\n".encode())
    return done


ends = []
for place in folders * processes:
    end, other = os.pipe()
    if os.fork() == 0:
        os.write(other, str(count(place)).encode())
        os._exit(0)
    os.close(other)
    ends.append(end)
print(sum(int(os.read(end, 100)) for end in ends), flush=True)
