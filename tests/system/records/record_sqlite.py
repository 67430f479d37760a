#!/usr/bin/python3
"""record_sqlite.py own|guarded DATABASE PROCESSES TIMES FILE...: processes count in an SQLite database.

own: with SQLite's own record locks, on the database. guarded: SQLite does no locking at all (VFS unix-none); what
excludes are record locks on the files, with whose names on different hosts the processes take turns: for reading
shared, for writing exclusive. Ends with an error if a count is lost, the database is damaged, or SQLite says so.
"""

import fcntl
import os
import sqlite3
import sys
import time

mode, path, processes, times, *locks = sys.argv[1:]
processes, times = int(processes), int(times)


def connect():
    if mode == "own":
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
    else:
        database = sqlite3.connect(f"file:{path}?vfs=unix-none", uri=True, isolation_level=None)
        database.execute("PRAGMA cache_size = 0")
        database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA page_size = 512")  # all of it fits in 4 KiB
    database.execute("PRAGMA journal_mode = MEMORY")
    return database


class Guard:
    def __init__(self, index):
        self.file = open(locks[index % len(locks)], "a+", encoding="ascii") if locks else None

    def lock(self, kind):
        if self.file:
            fcntl.lockf(self.file, kind, 1, 1000)


def value(database):
    return database.execute("SELECT value FROM counter").fetchone()[0]


def work(index):
    guard = Guard(index)
    for _ in range(times):
        guard.lock(fcntl.LOCK_EX)
        database = connect()
        database.execute("BEGIN IMMEDIATE")
        number = value(database)
        time.sleep(0.001)
        database.execute("UPDATE counter SET value = ?", (number + 1,))
        database.execute("COMMIT")
        guard.lock(fcntl.LOCK_SH)  # a downgrade: nobody can have written in between
        value(database)
        database.close()
        guard.lock(fcntl.LOCK_UN)


first = connect()
first.execute("CREATE TABLE counter (value INTEGER)")
first.execute("INSERT INTO counter VALUES (0)")
first.close()
children = []
for index in range(processes):
    child = os.fork()
    if child == 0:
        work(index)
        os._exit(0)
    children.append(child)
failures = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)
last = connect()
found, intact = value(last), last.execute("PRAGMA integrity_check").fetchone()[0]
print(f"{mode}: {found} increments, integrity {intact}, {failures} processes failed")
sys.exit(found != processes * times or intact != "ok" or failures > 0)
