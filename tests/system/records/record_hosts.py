#!/usr/bin/python3
"""record_hosts.py HOST:PORT/ROOT|local|kernel FOLDER FOLDER FOLDER [SCENARIO...]: record locks between three hosts.

Each scenario has a lock of its own and programs (calls.py) on the hosts whose mounts the folders are; a folder may
be given more than once. With "local" instead of a server there is no queue to look at: the mount has the store of
this host. With "kernel" the folder is no mount, and what the kernel's own locks do differently is left out: so
the scenarios themselves can be tested on a tmpfs. Prints the name of each scenario; ends with an error at the first
that goes wrong.
"""

import os
import select
import signal
import subprocess
import sys
import time
import traceback

import zookeeper

SECONDS = 30  # that anything which must happen is given
MOMENT = 0.03  # that is given to something which must not happen
CALLS = os.path.join(os.path.dirname(zookeeper.__file__), "calls.py")
WAITING_CALLS = {"72", "73", "257"}  # fcntl, flock, openat: their numbers on x86-64
if os.uname().machine == "aarch64":
    WAITING_CALLS = {"25", "32", "56"}


class Failure(Exception):
    pass


class Actor:
    """A program on a host that makes the calls it is told to, on the lock of the scenario."""

    def __init__(self, scenario, folder, name, steps):
        self.scenario, self.folder, self.name = scenario, folder, name
        self.children = []  # what children of fork= wrote
        self.buffer = b""
        path = os.path.join(folder, scenario.lock)
        command = [sys.executable, "-u", CALLS, path, "-"]
        self.process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.pid = self.process.pid
        for step in steps:
            self(step)

    def send(self, step):
        self.step = step
        self.process.stdin.write(step.encode() + b"\n")

    def answered(self, seconds):
        """Whether the answer to the step comes within so many seconds."""
        end = time.monotonic() + seconds
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline and not line.startswith(b"child "):
                return True
            if newline:
                self.children.append(line.decode().partition(" ")[2])
                self.buffer = rest
                continue
            left = max(end - time.monotonic(), 0)
            if not select.select([self.process.stdout], [], [], left)[0]:
                return False
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failure(f"{self} has ended")
            self.buffer += data

    def result(self):
        """What comes after the step in its line: it has answered."""
        line, _, self.buffer = self.buffer.partition(b"\n")
        name, _, result = line.decode().partition(" ")
        if name != self.step.partition("=")[0]:
            raise Failure(f"{self} answered {line}")
        return result

    def gets(self, expected="ok"):
        """The step that it waits in must come to an end."""
        if not self.answered(SECONDS):
            raise Failure(f"{self} still waits in {self.step}")
        result = self.result()
        if result != expected:
            raise Failure(f"{self}: {self.step} gave {result} instead of {expected}")

    def __call__(self, step, expected="ok"):
        self.send(step)
        self.gets(expected)

    def comes(self, step, expected):
        """The step must have that result before long: what another host did is seen after a round trip."""
        end = time.monotonic() + SECONDS
        while True:
            self.send(step)
            if not self.answered(SECONDS):
                raise Failure(f"{self} waits in {step}")
            result = self.result()
            if result == expected:
                return
            if time.monotonic() > end:
                raise Failure(f"{self}: {step} gave {result}, never {expected}")

    def waits(self, step):
        """The step must wait; comes back when it stands in the queue."""
        before = self.scenario.claims()
        self.send(step)
        end = time.monotonic() + SECONDS
        while not self.queued(before):
            if time.monotonic() > end:
                raise Failure(f"{self}: {step} never queued")
        self.still_waits()

    def queued(self, before):
        if before is not None:
            return self.scenario.claims() - before or self.answered(0)
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0] in WAITING_CALLS or self.answered(0.001)

    def still_waits(self):
        if self.answered(MOMENT):
            raise Failure(f"{self} did not wait in {self.step}: {self.result()}")

    def sees(self, kind, byte_range, owner):
        """The result of F_GETLK for a lock of the owner."""
        pid = owner.pid if owner.folder == self.folder else 0
        return f"{kind} {byte_range} {pid}"

    def end(self):
        """kill -9, with its children."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __str__(self):
        return f"{self.name} on {os.path.basename(self.folder)}"


class Scenario:
    def __init__(self, name, client, root, kernel, folders):
        self.lock, self.queue = name, f"/{root}/{name}"
        self.client, self.kernel, self.folders = client, kernel, folders
        self.actors = []

    def claims(self):
        """The names in the queue; None where there is none to look at."""
        return self.client and set(zookeeper.claims(self.client, self.queue))

    def on(self, hosts, *steps):
        """Programs on these hosts (digits), each of which makes these steps first."""
        actors = [
            Actor(self, self.folders[int(host)], chr(ord("P") + len(self.actors) + index), steps or ("open",))
            for index, host in enumerate(hosts)
        ]
        self.actors += actors
        return actors if len(actors) > 1 else actors[0]

    def run(self, function):
        """Ends the program with a message if it goes wrong."""
        begin = time.monotonic()
        try:
            function(self)
            seconds = time.monotonic() - begin
            print(f"{self.lock} {seconds:.2f} s", flush=True)
        except Failure as failure:
            frames = traceback.walk_tb(failure.__traceback__)
            line = next(number for frame, number in frames if frame.f_code is function.__code__)
            queue = sorted(self.claims() or (), key=zookeeper.sequence)
            sys.exit("\n".join([f"{self.lock}, line {line}: {failure}", *queue]))
        finally:
            for actor in self.actors:
                actor.end()
        if self.client:
            zookeeper.wait_claims(self.client, self.queue, 0, SECONDS)


def exclusion(at):
    p, q, r = at.on("010")
    p("w:0-10")
    q("w-nb:10-20", "EAGAIN")
    q("r-nb:5-6", "EAGAIN")
    q("w-nb:0-", "EAGAIN")
    q("w-nb:10+-1", "EAGAIN")
    q("w-nb:11-20")
    p("w-nb:9-11", "EAGAIN")
    r("w-nb:0-0", "EAGAIN")
    r("r-nb:20-30", "EAGAIN")
    q("get-w:0-100", q.sees("w", "0-10", p))
    r("get-r:10-10", r.sees("w", "0-10", p))
    r("get-r:15-15", r.sees("w", "11-20", q))
    p("get-w:0-10", "free")
    q("get-r:21-", "free")
    p("w:1000-")
    q("w-nb:4611686018427387904-4611686018427387905", "EAGAIN")
    q("get-w:999-", q.sees("w", "1000-", p))
    q("get-w:9223372036854775807-", q.sees("w", "1000-", p))
    p("u:0-")
    q("w:0-10")
    q("w:5000-")
    r("w-nb:0-10", "EAGAIN")
    p("r-nb:9000-9000", "EAGAIN")


def independence(at):
    actors = at.on("0120")
    for start in range(0, 400, 10):
        actors[start // 10 % 4](f"w-nb:{start}-{start + 9}")
    for start in range(0, 400, 10):
        actors[(start // 10 + 1) % 4](f"r-nb:{start + 9}-{start + 9}", "EAGAIN")


def readers(at):
    p, q, r, w = at.on("0121")
    p("r-nb:0-10")
    q("r-nb:5-20")
    r("r-nb:0-")
    w("get-r:0-", "free")
    w("w-nb:7-7", "EAGAIN")
    w.waits("w:8-30")
    q("u:0-")
    p("u:0-")
    w.still_waits()
    r("u:20-")
    w.still_waits()
    r("u:8-")
    w.gets()


def upgrade_past_writer(at):
    """The writer waits for what the upgrader holds; readers wait behind the writer, on its host and on both others."""
    p, q, *readers_behind = at.on("01012")
    p("r:0-10")
    q.waits("w:0-10")
    if not at.kernel:
        for reader in readers_behind:
            reader.waits("r:0-10")
    p("w:0-10")
    for actor in [q] + (readers_behind if not at.kernel else []):
        actor.still_waits()
    p("u:0-10")
    q.gets()
    if not at.kernel:
        for reader in readers_behind:
            reader.still_waits()
        q("u:0-10")
        for reader in readers_behind:
            reader.gets()


def upgrade_waits_for_reader(at):
    p, q, r = at.on("012")
    p("r:0-10")
    q("r:10-20")
    p.waits("w:0-12")
    r("w-nb:0-0", "EAGAIN")
    if not at.kernel:
        r.waits("r:0-10")  # behind the one who upgrades: no writer is starved
    q("u:10-11")
    p.still_waits()
    q("u:12-12")
    p.gets()
    q("r-nb:12-12", "EAGAIN")
    if not at.kernel:
        r.still_waits()
        p("r:0-12")
        r.gets()


def upgrade_deadlock(at):
    p, q, r, s = at.on("0120")
    for actor in (p, q, r):
        actor("r:0-10")
    p.waits("w:0-10")
    q("w:0-10", "EDEADLK")
    if not at.kernel:  # which sees one of those who are in P's way
        r("w:5-20", "EDEADLK")
    p.still_waits()
    s("w-nb:0-10", "EAGAIN")
    s("get-w:100-", "free")
    q("u:0-10")
    p.still_waits()
    r("u:0-10")
    p.gets()
    q("r-nb:0-0", "EAGAIN")


def upgrade_of_parts(at):
    """Upgrades of parts that the other does not have do not wait; a cycle is closed by a read as well."""
    p, q = at.on("01")
    p("r:0-20")
    q("r:10-30")
    p("w:0-9")
    q("w:21-30")
    p.waits("w:10-15")
    q("r:5-5", "EDEADLK")
    q("w:31-40")
    q("u:10-15")
    p.gets()
    q("r:16-20")
    p("w-nb:20-20", "EAGAIN")


def cycles(at):
    p, q, r = at.on("012")
    p("w:1-1")
    q("w:2-2")
    p.waits("w:2-2")
    q("w:1-1", "EDEADLK")
    p.still_waits()
    q("u:2-2")
    p.gets()
    p("u:0-")
    p("w:1-1")
    q("w:2-2")
    r("w:3-3")
    p.waits("w:2-2")
    q.waits("w:3-3")
    r("r:1-1", "EDEADLK")
    p.still_waits()
    q.still_waits()
    r("u:3-3")
    q.gets()
    q("u:0-")
    p.gets()


def chain(at):
    """Each waits for the one before: no cycle, and so no EDEADLK, whatever they hold."""
    p, q, r, s = at.on("0121")
    p("w:1-1")
    q("w:2-2")
    r("w:3-3")
    s("w:4-4")
    q.waits("w:1-1")
    r.waits("w:2-2")
    s.waits("r:1-3")
    p("w:5-5")
    p("u:0-")
    q.gets()
    r.still_waits()
    q("u:0-")
    r.gets()
    s.still_waits()
    r("u:0-")
    s.gets()


def cycle_over_files(at):
    p, q, r = at.on("000")
    for actor in (p, q, r):
        actor(f"file={actor.folder}/{at.lock}-other")
        actor("open")
    p("w:0-0")
    q("swap")
    q("w:5-5")
    p("swap")
    p.waits("w:0-10")
    r("w:7-7")  # innocent: holds something that nobody waits for
    q("swap")
    q("w:0-0", "EDEADLK")
    p.still_waits()
    q("swap")
    q("u:5-5")
    p.gets()


def downgrade(at):
    p, q, r, w = at.on("0120")
    p("w:0-10")
    q.waits("r:0-5")
    r.waits("r:3-8")
    p("r:0-10")
    q.gets()
    r.gets()
    w("w-nb:0-0", "EAGAIN")
    w("w-nb:10-10", "EAGAIN")
    # Of a part only.
    p("u:0-")
    q("u:0-")
    r("u:0-")
    p("w:0-10")
    q.waits("r:0-5")
    r.waits("r:3-8")
    p("r:0-6")
    q.gets()
    r.still_waits()
    p("r:7-8")
    r.gets()
    w("r-nb:9-9", "EAGAIN")


def fifo(at):
    p, *waiters = at.on("0120210")
    p("w:0-10")
    for number, waiter in enumerate(waiters):
        waiter.waits("w:0-10" if number % 2 else f"w:5-{20 + number}")
    p("u:0-")
    for number, waiter in enumerate(waiters):
        waiter.gets()
        for other in waiters[number + 1 :]:
            other.still_waits()
        waiter("u:0-")


def overlapping_waiters(at):
    """A waiter waits for those before it in the queue that overlap, and for no others."""
    p, q, r, s = at.on("0121")
    p("w:0-10")
    q.waits("w:5-15")
    r("w-nb:16-20")
    if not at.kernel:
        s.waits("w:15-15")  # free, but wanted by one who came before
    p("u:0-")
    q.gets()
    if not at.kernel:
        s.still_waits()
        q("u:10-15")
        s.gets()


def close_releases(at):
    p, q, r = at.on("010")
    p("w:0-10")
    p("r:20-30")
    r("w-nb:30-30", "EAGAIN")
    p("fork=close")
    p("fork=w-nb:0-0,u:0-,get-w:0-0")
    expected = ["close ok", "w-nb:0-0 EAGAIN", "u:0- ok", "get-w:0-0 " + p.sees("w", "0-10", p)]
    if p.children != expected:
        raise Failure(f"a child: {p.children}")
    r("w-nb:0-10", "EAGAIN")
    q.waits("w:0-30")
    p("open-ro")
    q.still_waits()
    p("close")
    q.gets()
    p("w-nb:0-0", "EAGAIN")
    # Also those taken through the other one, and of another file none.
    q("u:0-")
    p("open")
    p("w:0-10")
    p(f"file={p.folder}/{at.lock}-other")
    p("open")
    p("close")
    q.waits("w:0-30")
    p("dup")
    q.still_waits()
    p("close")
    q.gets()


def end_releases(at):
    p, q, r = at.on("012")
    p("w:0-10")
    q.waits("w:0-0")
    r.waits("w:10-20")
    p.end()
    q.gets()
    r.gets()
    p = at.on("1")
    p.waits("w:0-20")
    r.end()
    p.still_waits()
    q.end()
    p.gets()


def open_file_description(at):
    p, q, r = at.on("010")
    p("ofd-w:0-10")
    p("dup")
    p("close-first")
    p("fork=close")
    p("open")
    p("ofd-w-nb:10-10", "EAGAIN")  # another description
    p("close")
    q("w-nb:0-0", "EAGAIN")
    q("ofd-r-nb:5-20", "EAGAIN")
    r("r-nb:0-10", "EAGAIN")
    p("fork=ofd-w-nb:11-20,ofd-u:0-5")
    if p.children[1:] != ["ofd-w-nb:11-20 ok", "ofd-u:0-5 ok"]:
        raise Failure(f"a child: {p.children}")
    q("ofd-w:0-5")
    q("ofd-w-nb:6-6", "EAGAIN")
    r("w-nb:20-20", "EAGAIN")
    go = f"{os.path.dirname(at.folders[0])}/go-{at.lock}"
    p(f"spawn=await={go},close")
    p("close")
    q.waits("ofd-w:0-20")
    with open(go, "w", encoding="ascii"):
        pass
    q.gets()
    os.unlink(go)


def kinds(at):
    p, q, r, s = at.on("0120")
    p("ex")
    for actor in (q, s):
        actor("w-nb:5-5", "EAGAIN")
        actor("r-nb:9223372036854775807-", "EAGAIN")
        actor("get-r:5-5", actor.sees("w", "0-", p))
    r("ofd-r-nb:0-", "EAGAIN")
    r("excl-nb", "EEXIST")
    q.waits("w:5-5")
    p("un")
    q.gets()
    for actor in (p, r, s):
        actor("ex-nb", "EAGAIN")
        actor("sh-nb", "EAGAIN")
        actor("excl-nb", "EEXIST")
    r.waits("sh")
    q("r:5-5")
    r.gets()
    p("r:5-5")
    p("w-nb:100-100", "EAGAIN")  # the reader's flock is of the whole file
    p("get-w:100-100", p.sees("r", "0-", r))
    s.waits("excl")
    r("un")
    q("u:5-5")
    s.still_waits()
    p("u:0-")
    s.gets()
    q("r-nb:7-7", "EAGAIN")
    q.waits("r:7-7")
    s("close")
    q.gets()


def record_under_flock(at):
    """Through one handle; another host waits for the flock all the time."""
    p, q = at.on("01")
    p("ex")
    q.waits("ex")
    p("w:0-10")
    p("ofd-w:20-30")
    p("un")
    q.still_waits()
    p("u:0-")
    q.still_waits()
    p("ofd-u:0-")
    q.gets()
    q("un")
    p("w:0-10")
    q.waits("ex")
    p("ex")
    p("u:0-")
    q.still_waits()
    p("un")
    q.gets()
    q("un")
    # An exclusive open, and a record lock under it.
    p("excl")
    q.waits("w:5-5")
    p("w:0-10")
    p("close")
    q.gets()


def flocks_of_parents(at):
    """Two ask for all by flock, each for what a child of the other one has: who waits between them is in the way of both, but
    while the children hold nobody gains by giving way."""
    p, q, r = at.on("010")
    go = {actor: f"{os.path.dirname(at.folders[0])}/go-{at.lock}-{actor.name}" for actor in (p, q)}
    for actor, byte_range in ((p, "0-1"), (q, "3-3")):
        actor(f"spawn=r:{byte_range},await={go[actor]},u:0-")
        while not actor.children:
            actor("fstat")
    p.waits("ex")
    r.waits("w:1-1")
    q.waits("ex")
    queue = at.claims()
    for actor in (p, q, r):
        actor.still_waits()
    at.on("0")("w-nb:0-0", "EAGAIN")  # the daemon has time for others
    if at.claims() != queue:
        raise Failure(f"claims were placed again: {sorted(queue - at.claims(), key=zookeeper.sequence)}")
    with open(go[p], "w", encoding="ascii"):
        pass
    r.gets()
    for actor in (p, q):
        actor.still_waits()
    r("u:0-")
    q.gets()
    q("un")
    p.still_waits()
    with open(go[q], "w", encoding="ascii"):
        pass
    p.gets()
    for path in go.values():
        os.unlink(path)


def partial_unlock(at):
    p, q, r = at.on("012")
    p("w:0-100")
    q.waits("w:40-60")
    p("u:50-55")
    q.still_waits()
    p("u:40-60")
    q.gets()
    r("w-nb:39-39", "EAGAIN")
    r("w-nb:61-61", "EAGAIN")
    r("w-nb:60-60", "EAGAIN")
    r("get-w:0-39", r.sees("w", "0-39", p))
    r("get-w:61-", r.sees("w", "61-100", p))
    r("get-w:45-50", r.sees("w", "40-60", q))
    q("u:0-")
    r("w:40-60")
    p("u:0-10")
    r("w:0-10")
    r("r-nb:11-11", "EAGAIN")


def extension(at):
    p, q = at.on("01")
    p("w:0-10")
    q.waits("w:0-20")
    p("w:11-20")
    q.still_waits()
    p("u:0-10")
    q.still_waits()
    p("u:15-20")
    q.still_waits()
    p("u:11-14")
    q.gets()
    p("r-nb:20-20", "EAGAIN")


def merge(at):
    p, q = at.on("01")
    p("w:0-9")
    p("w:10-19")
    q.comes("get-w:5-", q.sees("w", "0-19", p))
    p("r:5-14")
    q.comes("get-w:5-5", q.sees("r", "5-14", p))
    q("get-r:0-", q.sees("w", "0-4", p))
    q("get-r:5-", q.sees("w", "15-19", p))
    q("get-r:5-14", "free")
    p("w:5-14")
    q.comes("get-r:7-7", q.sees("w", "0-19", p))
    p("u:8-11")
    q.comes("get-r:8-", q.sees("w", "12-19", p))
    q("get-r:7-", q.sees("w", "0-7", p))


def lockf(at):
    p, q = at.on("01")
    p("seek=100")
    q("seek=150")
    p("lockf=100")
    q("tlock=1", "EAGAIN")
    q("test=1", "EACCES")
    q("seek=200")
    q("tlock=0")
    p("seek=210")
    p("tlock=-10", "EAGAIN")
    p("seek=100")
    p("ulock=50")
    q("seek=150")
    q("lockf=-50")
    q("tlock=1", "EAGAIN")


KERNEL_TOO = [
    exclusion, independence, readers, upgrade_past_writer, upgrade_waits_for_reader, upgrade_deadlock, cycles, chain,
    cycle_over_files, downgrade, fifo, overlapping_waiters, close_releases, end_releases, open_file_description,
    partial_unlock, extension, merge, lockf, upgrade_of_parts,
]
NOT_KERNEL = [kinds, record_under_flock, flocks_of_parents]


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    server, *folders = sys.argv[1:5]
    wanted = set(sys.argv[5:])
    address, _, root = server.partition("/")
    client = None if server in ("local", "kernel") else zookeeper.connect(address)
    for function in KERNEL_TOO + (NOT_KERNEL if server != "kernel" else []):
        if wanted and function.__name__ not in wanted:
            continue
        Scenario(function.__name__, client, root, server == "kernel", folders).run(function)
    if client:
        client.stop()


if __name__ == "__main__":
    main()
