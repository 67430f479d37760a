#!/usr/bin/python3
"""record_player.py agreed|queue FIRST COUNT ACTOR FOLDER...: plays seeded sequences of calls, each checked by a
model.

Each seed is a sequence (record_sequences.py) whose calls have the outcome that record_model.py says: granted,
waiting, refused or a deadlock, and whose waiting calls are granted by it. With "agreed" the calls are those in which
Linux and dlockfs do not differ, and the folders may be on a tmpfs, too: each sequence is played in every folder. With
"queue" the rules are those of dlockfs. A folder may be two with a plus between them: mounts of one service, which are
two hosts to the processes of the sequences. ACTOR is the program record_actor. Several processes play at a time
(JOBS, 4 unless set). Ends with the seed and the calls so far at the first outcome that differs; then SEED= and
COUNT=1 play it again. Prints how many calls had which outcome.
"""

import collections
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback

from record_model import LAST
from record_sequences import NAMES, SLOTS, Sequence

COMMANDS = {"p": {"get": 5, "set": 6, "wait": 7}, "o": {"get": 36, "set": 37, "wait": 38}}
TYPES = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}
FLOCKS = {"r": fcntl.LOCK_SH, "w": fcntl.LOCK_EX, "u": fcntl.LOCK_UN}
MODES = {"rw": os.O_RDWR, "ro": os.O_RDONLY, "wo": os.O_WRONLY}
EXCLUSIVE = {None: 0, "waits": os.O_EXCL, "tries": os.O_EXCL | os.O_NONBLOCK}
SECONDS = 90  # for anything that must happen
SLEEPS = ("request_wait_answer", "fcntl_setlk", "locks_lock_inode_wait")
# An exclusive open is three requests of the kernel, LOOKUP, CREATE and GETATTR, and waits in the last one.
REQUESTS = 3


class Wrong(Exception):
    pass


class Mount:
    """A mount of dlockfs."""

    def __init__(self, folder):
        self.folder = folder
        self.held = os.open(f"{folder}/steps-{os.getpid()}", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self.held, fcntl.LOCK_SH)

    def step(self):
        """A round trip to the store: what was called before is read and sent, and what the store says of it has come.
        Nothing less will do: a daemon that always has a next request to read comes late to the answers of its store."""
        os.fsync(self.held)


class Player:
    """Plays sequences in one folder, or in two that are hosts."""

    def __init__(self, actor, folders):
        self.folders = folders
        self.mounts = [Mount(folder) for folder in folders if os.path.exists(f"{folder}/.dlockfs/status")]
        self.processes = [None] * SLOTS  # by slot: (number, host, pidfd)
        self.pids = {}  # by number of a process
        self.alive = set()  # their numbers
        pipes = [(os.pipe(), os.pipe()) for _ in range(SLOTS + 1)]
        ends = [str(fd) for request, answer in pipes for fd in (request[0], answer[1])]
        self.channels = [(request[1], answer[0]) for request, answer in pipes]
        self.maker = subprocess.Popen([actor, *ends], pass_fds=[int(fd) for fd in ends], stdin=subprocess.DEVNULL)
        for fd in ends:
            os.close(int(fd))

    #
    # Processes
    #

    def ask(self, slot, line):
        os.write(self.channels[slot][0], line.encode())

    def answered(self, slot, seconds=0.0):
        return bool(select.select([self.channels[slot][1]], [], [], seconds)[0])

    def result(self, slot):
        if not self.answered(slot, SECONDS):
            return "no answer"
        return os.read(self.channels[slot][1], 4096).decode()

    def started(self, slot, by, number, host):
        self.ask(by, f"fork {slot}")
        self.pids[number] = int(self.result(by))
        self.processes[slot] = (number, host, os.pidfd_open(self.pids[number]))
        self.alive.add(number)

    def kill(self, slot):
        number, _, pidfd = self.processes[slot]
        self.processes[slot] = None
        self.alive.discard(number)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        if not select.select([pidfd], [], [], SECONDS)[0]:
            raise Wrong(f"process {slot} does not end")
        os.close(pidfd)
        if self.answered(slot):
            os.read(self.channels[slot][1], 4096)

    def asleep(self, slot):
        with open(f"/proc/{self.pids[self.processes[slot][0]]}/wchan", encoding="ascii") as file:
            return file.read() in SLEEPS

    #
    # Who waits
    #

    def steps(self, number):
        """Lets what was called come to its end on all hosts, which takes some questions and answers."""
        for _ in range(number):
            for mount in self.mounts:
                mount.step()

    def wait_on(self, slots, steps, requests=1):
        """Until the calls of the slots wait, all of them, whatever was called before."""
        end = time.monotonic() + SECONDS
        asleep = 0
        while slots and asleep < requests:
            for slot in slots:
                if self.answered(slot):
                    raise Wrong(f"process {slot}, to wait: {self.result(slot)}")
            self.steps(steps)
            asleep = asleep + 1 if all(self.asleep(slot) for slot in slots) else 0
            if time.monotonic() > end:
                raise Wrong(f"neither waits nor ends: one of {slots}")

    def queue(self, file, host=0):
        """The lines of a file's queue, as the host shows it, each as its words."""
        try:
            with open(f"{self.folders[host]}/.dlockfs/locks/{file}-{self.name}", encoding="utf-8") as queue:
                return [set(line.split()) for line in queue]
        except FileNotFoundError:
            return []

    def pid_word(self, slot):
        return f"pid={self.pids[self.processes[slot][0]]}"

    def check_shown(self, slots):
        """Of each that waits a queue has a line that says so, on its host."""
        for slot in slots:
            lines = [line for file in NAMES for line in self.queue(file, self.processes[slot][1])]
            if not any({"state=waiting", self.pid_word(slot)} <= line for line in lines):
                raise Wrong(f"process {slot} waits, and no queue shows it: {lines}")

    def order(self, file, slots):
        """Those who wait for a file, as its queue has them: what a process waits for is the last of its claims."""
        places = {word: place for place, line in enumerate(self.queue(file)) for word in line}
        pids = {slot: self.pid_word(slot) for slot in slots}
        return sorted((slot for slot in slots if pids[slot] in places), key=lambda slot: places[pids[slot]])

    def wait_for_order(self, file, slots):
        """Until all hosts have queued those again who are to let others of a cycle pass."""
        end = time.monotonic() + SECONDS
        while (found := self.order(file, slots)) != slots:
            if time.monotonic() > end:
                raise Wrong(f"order of those that wait for {file}: {found} instead of {slots}")
            time.sleep(0.002)

    #
    # Calls
    #

    def path(self, slot, file):
        return f"{self.folders[self.processes[slot][1]]}/{file}-{self.name}"

    def unlink(self, name):
        for folder in set(self.folders):
            try:
                os.unlink(f"{folder}/{name}-{self.name}")
            except FileNotFoundError:
                pass

    def line(self, slot, name, *arguments):
        """The request for an actor."""
        if name == "open":
            fd, file, mode, exclusive = arguments
            return f"open {fd} {MODES[mode] | os.O_CREAT | EXCLUSIVE[exclusive]} {self.path(slot, file)}"
        if name == "flock":
            fd, mode, waits = arguments
            return f"flock {fd} {FLOCKS[mode] | (0 if waits else fcntl.LOCK_NB)}"
        if name == "fcntl":
            fd, kind, command, mode, *span = arguments
            return " ".join(map(str, ["fcntl", fd, COMMANDS[kind][command], TYPES.get(mode, mode), *span]))
        return " ".join(map(str, [name, *arguments]))

    def play(self, slot, call):
        """Makes a call that is no program's, or asks for one that is; whether it has been made."""
        name, *arguments = call
        if name == "start":
            self.started(slot, SLOTS, *arguments)
        elif name == "fork":
            self.started(arguments[0], slot, *arguments[1:])
        elif name == "kill":
            self.kill(slot)
        elif name == "unlink":
            self.unlink(arguments[0])
        else:
            self.ask(slot, self.line(slot, *call))
            return False
        return True

    def check_found(self, slot, asker, text, candidates):
        """What F_GETLK found has to be one of those. Of an open file's lock Linux tells no process, dlockfs one that
        asked; but FUSE never tells F_OFD_GETLK of any."""
        kind, whence, start, length, pid = map(int, text.split()[1:])
        if kind == fcntl.F_UNLCK:
            return not candidates
        found = (start, start + length - 1 if length else LAST, "rw"[kind])
        for *candidate, owner, host, numbers in candidates:
            if tuple(candidate) != found or whence != os.SEEK_SET:
                continue
            if (asker if self.mounts else owner) == "o":
                pids = [-1]
            elif self.mounts and host != self.processes[slot][1]:
                pids = [0]
            else:
                pids = [self.pids[number] for number in numbers]
                if not self.alive.issuperset(numbers):
                    pids.append(0)
            if pid in pids:
                return True
        return False

    def check(self, slot, call, result, expected):
        if isinstance(expected, list):
            good = result.startswith("found ") and self.check_found(slot, call[2], result, expected)
        else:
            good = result == expected
        if not good:
            raise Wrong(f"gave {result}")

    def run(self, sequence, calls):
        """Plays a sequence, with files of that name; what went wrong, or None."""
        self.name, waiting, number = sequence, {}, 0
        for name in NAMES:
            self.unlink(name)
        try:
            for number, (slot, call, expected, granted, order) in enumerate(calls):
                made = self.play(slot, call)
                if call[0] == "kill":
                    waiting.pop(slot, None)
                if expected == "waits":
                    waiting[slot] = call
                    self.wait_on([slot], 2, REQUESTS if call[0] == "open" else 1)
                elif not made:
                    self.check(slot, call, self.result(slot), expected)
                for other in granted:
                    del waiting[other]
                    if (found := self.result(other)) != "ok":
                        raise Wrong(f"process {other}, to be granted: {found}")
                if self.mounts:
                    for file, slots in order.items():
                        self.wait_for_order(file, slots)
                self.steps(1)
                self.wait_on(sorted(waiting), 1)
                if self.mounts and granted:
                    self.check_shown(waiting)
            self.wait_on(sorted(waiting), 8)
            for slot in range(SLOTS):
                if self.processes[slot]:
                    self.kill(slot)
        except Wrong as wrong:
            lines = [" ".join(map(str, line)) for line in calls[: number + 1]]
            return "\n".join(lines + [f"{'+'.join(self.folders)}: {wrong}"])
        return None

    def end(self):
        for slot in range(SLOTS):
            if self.processes[slot]:
                signal.pidfd_send_signal(self.processes[slot][2], signal.SIGKILL)
        self.maker.kill()
        self.maker.wait()


#
# Several players at a time
#


def play(arguments, share, shares, report):
    """Plays one of so many shares of the seeds; writes the counts, or what went wrong."""
    mode, first, count, actor, *folders = arguments
    counts, wrong = collections.Counter(), None
    players = []
    try:
        for folder in folders:
            players.append(Player(actor, folder.split("+")))
        hosts = max(len(player.folders) for player in players)
        for seed in range(int(first) + share, int(first) + int(count), shares):
            calls = Sequence(seed, mode == "agreed", hosts).calls
            for slot, call, result, granted, order in calls:
                if call[0] in ("open", "flock", "fcntl"):
                    counts["found" if isinstance(result, list) else result] += 1
                else:
                    counts[call[0]] += 1
                counts["granted later"] += len(granted)
                counts["waiting cycles"] += bool(order)
            for player in players:
                wrong = wrong or player.run(f"{mode}-{seed}", calls)
            if wrong:
                wrong = f"seed {seed}, {mode}:\n{wrong}"
                break
    finally:
        for player in players:
            player.end()
        os.write(report, json.dumps([wrong, counts]).encode())


def main():
    if len(sys.argv) < 6 or sys.argv[1] not in ("agreed", "queue"):
        sys.exit(__doc__)
    shares = min(int(os.environ.get("JOBS", "4")), int(sys.argv[3]))
    reports, counts, wrongs = {}, collections.Counter(), []
    for share in range(shares):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            status = 1
            try:
                play(sys.argv[1:], share, shares, writer)
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writer)
        reports[reader] = child
    while reports and not wrongs:
        for reader in select.select(list(reports), [], [])[0]:
            text = os.read(reader, 1 << 20)
            status = os.waitstatus_to_exitcode(os.waitpid(reports.pop(reader), 0)[1])
            wrong, counted = json.loads(text) if text else ["a player failed", {}]
            counts.update(counted)
            if wrong or status:
                wrongs.append(wrong or "a player failed")
    for child in reports.values():
        os.kill(child, signal.SIGTERM)
    if wrongs:
        sys.exit("\n".join(wrongs))
    print(", ".join(f"{result}: {number}" for result, number in sorted(counts.items())))


if __name__ == "__main__":
    main()
