#!/usr/bin/python3
"""Opens new lock files while other threads call stat(2) on them all the time: stat_race.py FOLDER TIMES

Prints how many of the names cannot be found afterwards, although they are open.
"""

import os
import sys
import threading
import time

folder, times = sys.argv[1], int(sys.argv[2])


def look(path, stopped):
    while not stopped.is_set():
        os.path.exists(path)


def is_hidden(path):
    stopped = threading.Event()
    threads = [threading.Thread(target=look, args=(path, stopped)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.001)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    time.sleep(0.003)
    stopped.set()
    for thread in threads:
        thread.join()
    hidden = not os.path.exists(path)
    os.close(file)
    return hidden


print(sum(is_hidden(f"{folder}/race{number}") for number in range(times)))
