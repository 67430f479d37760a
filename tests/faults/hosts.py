# SPDX-License-Identifier: Apache-2.0
"""The hosts whose processes lock (worker.py), with the daemon of dlockfs where that is what they lock by."""

import json
import os
import signal
import subprocess
import sys
import time

from servers import descendants, signal_all, wait_until
from session import T

HERE = os.path.dirname(os.path.abspath(__file__))


def name(pid):
    """Of the program that the process runs."""
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


class Daemon:
    """A file system's, in the foreground, and kept by no service manager."""

    type = ""  # of the mount

    def __init__(self, host):
        self.host = host
        self.mount = f"{host.folder}/{host.name}"
        self.process = None
        self.environment = {}

    def command(self):
        raise NotImplementedError

    def start(self):
        os.makedirs(self.mount, exist_ok=True)
        command = self.command()
        with open(f"{self.host.folder}/{self.host.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                self.host.machine.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment},
            )
        wait_until(f"{self.mount} is mounted", self.mounted)

    def mounted(self):
        with open("/proc/self/mounts", encoding="ascii") as mounts:
            return any(line.split()[1:3] == [self.mount, self.type] for line in mounts)

    def kill(self):
        """It alone: its guard acts."""
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                signal_all(descendants(self.process.pid), signal.SIGKILL)
                self.process.wait()
        self.unmount()

    def unmount(self):
        while self.mounted():
            subprocess.run(["umount", "-l", self.mount], check=False)


class DlockfsDaemon(Daemon):
    """If it is killed, its holders are told at once."""

    type = "fuse.dlockfs"

    def __init__(self, host, program, store, settings=()):
        super().__init__(host)
        self.program = program
        self.store = store
        with open(f"{host.folder}/dlockfs.ini", "w", encoding="ascii") as file:
            print("[store]", *settings, "[locks]", "on_lost = SIGUSR1", sep="\n", file=file)

    def guards(self):
        return [pid for pid in descendants(self.process.pid) if name(pid) == "dlockfs-guard"]

    def command(self):
        command = [self.program, "--foreground", "--store", self.store, "--config", f"{self.host.folder}/dlockfs.ini"]
        return [*command, "--session-timeout", f"{T:g}s", "-o", "new_root", self.mount]


class GlusterDaemon(Daemon):
    type = "fuse.glusterfs"

    def __init__(self, host, service):
        super().__init__(host)
        self.service = service

    def command(self):
        server = f"--volfile-server={self.service.servers[0].address}"
        log = f"--log-file={self.host.folder}/{self.host.name}.client.log"
        return ["glusterfs", "--no-daemon", server, f"--volfile-id={self.service.volume}", log, self.mount]


class Host:
    def __init__(self, name, machine, folder):
        self.name = name
        self.machine = machine
        self.folder = folder
        self.daemon = None
        self.workers = []  # in order of their slots

    def signal(self, number):
        """To all that runs on it."""
        pids = [pid for worker in self.workers for pid in worker.pids()]
        if self.daemon:
            pids += descendants(self.daemon.process.pid)
        signal_all(pids, number)


class Worker:
    """A process that locks. Where one was killed, another takes its slot, by another name."""

    def __init__(self, host, number, slot, config):
        self.host = host
        self.number = number
        self.slot = slot
        self.config = config
        self.process = None
        self.lives = 0

    @property
    def name(self):
        return f"{self.host.name}{self.number}" + (f".{self.lives}" if self.lives > 1 else "")

    def start(self):
        self.lives += 1
        config = {**self.config, "process": self.name, "host": self.host.name, "slot": self.slot}
        config["seed"] = config["seed"] * 100 + self.slot + 10 * self.lives
        config["mount"] = f"{self.host.folder}/{self.host.name}"
        with open(f"{self.host.folder}/{self.name}.out", "wb") as output:
            self.process = subprocess.Popen(
                self.host.machine.inside(sys.executable, f"{HERE}/worker.py", json.dumps(config)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def pids(self):
        return descendants(self.process.pid) if self.process.poll() is None else []

    def agents(self):
        """Those of its processes that lock on its behalf."""
        return [pid for pid in self.pids() if name(pid) == "etcdctl"]

    def kill(self):
        """Returns when it was over."""
        signal_all(self.pids(), signal.SIGKILL)
        self.process.wait()
        return time.monotonic_ns()
