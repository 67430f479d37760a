# SPDX-License-Identifier: Apache-2.0
"""A driver: a program that uses one kind of lock by order of the benchmark, and says when it got it.

It reads orders from standard input, one a line, `VERB KEY=NUMBER...`, and answers each with records and an empty line.

    run     clients=N take and release the lock again and again, for so many seconds_ms or at most so many cycles each.
            own=1: each client has a lock of its own. hold_us: how long a lock is held. shared: so many percent of the
            attempts are shared. wait_ms: an attempt is given up after so long
    queue   clients=N wait for a lock that is held, one after the other where the driver can see that they wait, and
            apart_us after each other; it is held for hold_us more and released, and then each of them releases at once
    hold    holds count=N other locks, until the order drop

Drivers may have other verbs of their own. A record is `CLIENT KIND ASKED GRANTED RELEASING RELEASED`. KIND is x
(exclusive), s (shared) or t (given up; then it was not granted). Times are microseconds of CLOCK_MONOTONIC: before the
call that asks, after it, before the call that releases, and after it. So what is locked is held between GRANTED and
RELEASING at least.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import namedtuple

Record = namedtuple("Record", "client kind asked granted releasing released")


PR_SET_PDEATHSIG = 1


def end_with_parent():
    """To be called in a child: it is killed when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Failed(Exception):
    """The driver ended, or did not answer in time."""


class Driver:
    """Starts the command when it is first needed, and again after it has failed."""

    def __init__(self, command):
        self.command = command
        self.process = None
        self.messages = None

    def _start(self):
        self.messages = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )

    def order(self, verb, limit_s=60, **numbers):
        """Returns the records."""
        if not self.process:
            self._start()
        line = " ".join([verb] + [f"{key}={int(number)}" for key, number in numbers.items()])
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            return [self._record(answer) for answer in self._answer(time.monotonic() + limit_s, limit_s)]
        except (BrokenPipeError, EOFError):
            reason = self._end()
            raise Failed(reason or "ended without a message") from None
        except TimeoutError as error:
            self._end()
            raise Failed(str(error)) from None

    def _answer(self, deadline, limit_s):
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while answer != b"\n" and not answer.endswith(b"\n\n"):
                if not selector.select(max(0, deadline - time.monotonic())):
                    raise TimeoutError(f"not within {limit_s} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise EOFError
                answer += chunk
        return answer.decode().splitlines()[:-1]

    @staticmethod
    def _record(line):
        client, kind, *times = line.split()
        return Record(int(client), kind, *map(int, times))

    def _end(self):
        """Ends it with its children, and returns the last line that it wrote to stderr."""
        process, self.process = self.process, None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        with self.messages:
            self.messages.seek(0)
            lines = self.messages.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self):
        """Lets it end by itself, if it does soon."""
        if not self.process:
            return
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        self._end()
