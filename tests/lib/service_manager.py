#!/usr/bin/python3
"""What systemd does for a service that has it keep descriptors: service_manager.py FOLDER NAME COMMAND...

Runs the command, with messages to FOLDER/NAME.log, its process id and start time in FOLDER/pids/NAME (processes.sh), and a
socket for sd_notify(3). Descriptors that come with FDSTORE=1 are kept, and given to the next process (sd_listen_fds(3)); that
is started when the one before was killed or failed, as by Restart=on-failure. Each number in the file FOLDER/NAME.limits, if
there is one, is the limit of open descriptors of one more process that is started.

WATCHDOG_USEC in the environment is WatchdogSec=, with WatchdogSignal=SIGKILL: the command is killed when it has been ready and
says nothing for so long. It may choose another limit for itself (WATCHDOG_USEC= in a message).

SIGUSR1 is "systemctl restart" with RestartKillSignal=SIGUSR1; SIGTERM is "systemctl stop". When the service is down for good
it prints what is still kept, and ends with the status of the last process. If it is killed the command is, too, unless that has
become another user.

Prints "started", "ready", "keeps NAME", "drops NAME", "watchdog", "ended STATUS" as it happens, and at last "left" with names.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import resource
import select
import signal
import socket
import sys
import time

FIRST = 3  # SD_LISTEN_FDS_START
UNIT = pathlib.Path(__file__).parents[2] / "etc/systemd/dlockfs.service.in"
MOST = int(re.search(r"^FileDescriptorStoreMax=(\d+)", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1])
TOLD = int(re.search(r"^Environment=FDSTORE=(\d+)", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1])
PAUSE = 0.05  # RestartSec=
PR_SET_PDEATHSIG = 1
SYS_KCMP = {"x86_64": 312, "aarch64": 272}[os.uname().machine]
KCMP_FILE = 0

libc = ctypes.CDLL(None)


def say(*words):
    print(*words, flush=True)


def same(one, other):
    """Whether both descriptors are of one open file."""
    return libc.syscall(SYS_KCMP, os.getpid(), os.getpid(), KCMP_FILE, one, other) == 0


class Manager:
    def __init__(self, folder, name, command):
        self.folder = folder
        self.name = name
        self.command = command
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"{folder}/{name}.notify"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.socket.bind(path)
        os.chmod(path, 0o666)  # as that of systemd: the daemon may be of another user
        self.socket.setblocking(False)
        self.store = []  # (name, descriptor)
        self.child = 0
        self.asked = set()  # signals that came, and
        self.told = set()  # those of which the child has heard
        self.limit = None  # the watchdog's, in seconds
        self.due = None  # when the child is killed
        self.wake, end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(end)
        for number in signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM:
            signal.signal(number, lambda number, _: self.asked.add(number))

    def tell(self):
        for number in self.asked & {signal.SIGUSR1, signal.SIGTERM} - self.told:
            os.kill(self.child, number)
            self.told.add(number)

    def take_limit(self):
        path = f"{self.folder}/{self.name}.limits"
        with contextlib.suppress(FileNotFoundError), open(path, "r+", encoding="ascii") as file:
            first, *rest = file.read().split() or [None]
            file.seek(0)
            file.truncate()
            print(*rest, file=file)
            return first and int(first)
        return None

    def start(self):
        limit = self.take_limit()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                self.execute(parent, limit)
            finally:
                os._exit(127)
        self.child = child
        self.limit = int(os.environ.get("WATCHDOG_USEC", 0)) / 1e6
        self.due = None
        self.record(child)
        say("started")

    def execute(self, parent, limit):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
        os.setsid()
        log = os.open(f"{self.folder}/{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        environment = dict(os.environ, NOTIFY_SOCKET=self.socket.getsockname(), FDSTORE=str(TOLD))
        if "WATCHDOG_USEC" in environment:
            environment["WATCHDOG_PID"] = str(os.getpid())
        if self.store:
            environment["LISTEN_PID"] = str(os.getpid())
            environment["LISTEN_FDS"] = str(len(self.store))
            environment["LISTEN_FDNAMES"] = ":".join(name for name, _ in self.store)
        away = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 100) for _, descriptor in self.store]
        for place, descriptor in enumerate(away, FIRST):
            os.dup2(descriptor, place)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        os.execve(self.command[0], self.command, environment)

    def record(self, child):
        with open(f"/proc/{child}/stat", encoding="ascii") as file:
            started = file.read().rpartition(") ")[2].split()[19]
        path = f"{self.folder}/pids/{self.name}"
        with open(path + ".new", "w", encoding="ascii") as file:
            print(child, started, file=file)
        os.rename(path + ".new", path)

    def drop(self, name):
        for entry in [entry for entry in self.store if entry[0] == name]:
            say("drops", name)
            os.close(entry[1])
            self.store.remove(entry)

    def keep(self, name, descriptors):
        for descriptor in descriptors:
            # In this order; systemd writes a warning to its journal.
            if len(self.store) == MOST:
                sys.exit(f"Cannot store more fds than FileDescriptorStoreMax={MOST}, closing {name}.")
            if any(same(descriptor, kept) for _, kept in self.store):
                os.close(descriptor)
                continue
            say("keeps", name)
            os.set_inheritable(descriptor, False)
            self.store.append((name, descriptor))

    def hear_all(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.hear(*socket.recv_fds(self.socket, 65536, 16)[:2])

    def hear(self, message, descriptors):
        variables = dict(line.split("=", 1) for line in message.decode().splitlines())
        name = variables.get("FDNAME", "stored")
        if "FDSTORE" in variables:
            # systemd would be woken for each request of the kernel.
            if variables.get("FDPOLL") != "0":
                sys.exit(f"{name} is kept without FDPOLL=0")
            self.keep(name, descriptors)
        if "FDSTOREREMOVE" in variables:
            self.drop(name)
        if "READY" in variables:
            say("ready")
        if "WATCHDOG_USEC" in variables:
            self.limit = int(variables["WATCHDOG_USEC"]) / 1e6
        if self.limit and (self.due or "READY" in variables):
            if variables.keys() & {"READY", "WATCHDOG", "WATCHDOG_USEC"}:
                self.due = time.monotonic() + self.limit

    def watch(self):
        """Kills a child that hangs. Returns for how long there is nothing to do."""
        if self.due is None:
            return None
        left = self.due - time.monotonic()
        if left > 0:
            return left
        say("watchdog")
        os.kill(self.child, signal.SIGKILL)
        self.due = None
        return None

    def reap(self):
        """The status of the child, if it has ended."""
        child, status = os.waitpid(self.child, os.WNOHANG)
        if not child:
            return None
        self.child = 0
        self.told.clear()
        status = os.waitstatus_to_exitcode(status)
        say("ended", status)
        return status

    def run(self):
        self.start()
        while True:
            select.select([self.socket, self.wake], [], [], self.watch())
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, 100)
            self.hear_all()
            self.tell()
            status = self.reap()
            if status is None:
                continue
            self.hear_all()  # what it has said before it ended
            restart = status != 0 or signal.SIGUSR1 in self.asked
            self.asked.discard(signal.SIGUSR1)
            if not restart or signal.SIGTERM in self.asked:
                break
            time.sleep(PAUSE)
            self.start()
            self.tell()
        say("left", *(name for name, _ in self.store))
        sys.exit(status if 0 <= status else 1)


if len(sys.argv) < 4:
    sys.exit(__doc__)
Manager(sys.argv[1], sys.argv[2], sys.argv[3:]).run()
