#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One who takes locks, and writes down what happens: worker.py CONFIG, JSON with

    process, host, seed     who it is
    kind, servers, mount    how it locks: a class of locks.py, and where
    step_s                  how long it waits between two writes
    folder                  with the witness, the register and the folder of histories

The first byte of the witness says what everybody is to do: 0 work, 1 a fault is on (who holds goes on holding, so that the fault
meets a holder), 2 end once no call is under way. Byte number `slot` is 1 while this one holds the lock `one`, and 2 another one."""

import json
import mmap
import random
import signal
import socket
import sys
import time
import traceback

import locks
from session import T

WORK, FAULT, END = range(3)
LOOK_S = 0.01  # between two looks whether the lock is lost
LONGEST_S = 7 * T  # that a fault keeps anybody holding


class Worker:
    def __init__(self, config):
        self.config = config
        self.process = config["process"]
        self.random = random.Random(config["seed"])
        folder = config["folder"]
        self.history = open(f"{folder}/history/{self.process}", "ab", buffering=0)
        with open(f"{folder}/witness", "r+b") as file:
            self.witness = mmap.mmap(file.fileno(), 0)
        register = socket.socket(socket.AF_UNIX)
        register.connect(f"{folder}/register")
        self.register = register.makefile("rw", encoding="utf-8")
        self.value = config["seed"] * 1000000

    def note(self, kind, call, lock, **values):
        event = {"time": time.monotonic_ns(), "process": self.process, "host": self.config["host"], "type": kind, "f": call, "lock": lock}
        self.history.write(json.dumps({**event, **values}).encode() + b"\n")

    def write(self, lock, token):
        self.value += 1
        self.note("invoke", "write", lock, value=self.value, token=token)
        print(json.dumps({"lock": lock, "value": self.value, "token": token}), file=self.register, flush=True)
        answer = json.loads(self.register.readline())
        self.note("ok" if "was" in answer else "fail", "write", lock, value=self.value, token=token, **answer)

    def hold(self, lock, name, token):
        """Until it is over, or the lock says that it is lost; that the register refuses a write does not count."""
        begin = written = time.monotonic()
        seconds = self.random.uniform(0.05, 0.3)
        while True:
            lost = lock.lost()
            if lost:
                self.note("info", "told", name, reason=lost)
                return False
            now = time.monotonic()
            if now - begin > (LONGEST_S if self.witness[0] == FAULT else seconds):
                return True
            if now >= written:
                self.write(name, token)
                written = now + self.config["step_s"]
            lock.pause(LOOK_S)

    def cycle(self, lock):
        name = "one" if self.random.random() < 0.7 else f"own-{self.config['host']}"
        self.note("invoke", "acquire", name)
        try:
            token = lock.acquire(name)
        except locks.Failed as error:
            self.note("fail", "acquire", name, error=str(error))
            return False
        self.note("ok", "acquire", name, token=token)
        self.witness[self.config["slot"]] = 1 if name == "one" else 2
        kept = self.hold(lock, name, token)
        self.witness[self.config["slot"]] = 0
        if kept:
            self.note("invoke", "release", name)
        try:
            lock.release()
        except locks.Failed as error:
            if kept:
                self.note("fail", "release", name, error=str(error))
            return False
        if kept:
            self.note("ok", "release", name)
        return kept

    def work(self):
        kind = getattr(locks, self.config["kind"])
        lock = None
        while self.witness[0] != END:
            try:
                lock = lock or kind(self.config)
                good = self.cycle(lock)
            except locks.Failed:
                good = False  # it cannot connect
            if not good:
                if lock:
                    lock.close()
                lock = None
                time.sleep(0.1)
        if lock:
            lock.close()


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        Worker(json.loads(sys.argv[1])).work()
    except Exception:  # of a thread that must not be waited for
        traceback.print_exc()
        locks.end(1)
    locks.end(0)


if __name__ == "__main__":
    main()
