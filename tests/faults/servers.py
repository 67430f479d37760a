# SPDX-License-Identifier: Apache-2.0
"""The services that keep locks, each server on a machine of its own (network.py), and what can go wrong with them. Their clocks can
be stepped (tests/system/chaos/stepped_clock.c)."""

import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from session import T

START_S = 90
# What can happen to those that have a leader.
SEVERAL = ("cut-leader", "leader-cut", "leader-kill", "leader-stop", "follower-kill", "follower-stop", "all-kill", "all-wipe")


class NotInTime(Exception):
    """Something does not work, that has nothing to do with locks."""


def descendants(pid):
    """The process and all that it has started, which may have left its group; those that started others first."""
    found = [pid]
    for parent in found:
        for task in glob.glob(f"/proc/{parent}/task/*/children"):
            try:
                with open(task, encoding="ascii") as file:
                    found += map(int, file.read().split())
            except OSError:
                pass  # it has ended
    return found


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def traced(pid):
    """Or has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return "TracerPid:\t0\n" not in file.read()
    except OSError:
        return True


def wait_until(what, condition, seconds=START_S):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise NotInTime(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Server:
    """A process on a machine, with a folder."""

    def __init__(self, machine, folder):
        self.machine = machine
        self.folder = f"{folder}/{machine.name}"
        os.makedirs(self.folder, exist_ok=True)
        self.process = None

    @property
    def address(self):
        return self.machine.address

    def launch(self, command, environment=None):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(
                self.machine.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def signal(self, number):
        signal_all(descendants(self.process.pid), number)

    def slow_disk(self, seconds):
        """What it writes is on its disk so much later, until the process that is returned is terminated."""
        calls = f"fsync,fdatasync:delay_enter={int(seconds * 1e6)}"
        pids = descendants(self.process.pid)
        command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", f"inject={calls}"]
        tracer = subprocess.Popen([*command, *(word for pid in pids for word in ("-p", str(pid)))], stderr=subprocess.DEVNULL)
        wait_until(f"{self.folder} is traced", lambda: all(map(traced, pids)) or tracer.poll() is not None)
        return tracer

    def kill(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()


class Service:
    """Servers of one kind. `faults` names those of nemesis.py that make sense for it, beside the ones for hosts."""

    count = 3
    port = 0
    faults = ()

    def __init__(self, network, folder, clock):
        self.clock = clock
        self.servers = [Server(network.machine(f"s{number + 1}"), folder) for number in range(self.count)]
        for server in self.servers:
            self.prepare(server)

    @property
    def machines(self):
        return [server.machine for server in self.servers]

    @property
    def addresses(self):
        return [f"{server.address}:{self.port}" for server in self.servers]

    def prepare(self, server):
        """Before its first start, and after its data were taken away."""

    def command(self, server):
        raise NotImplementedError

    def serves(self, server):
        raise NotImplementedError

    def leads(self, server):
        return True

    def launch(self, server):
        server.launch(self.command(server))

    def start(self):
        for server in self.servers:
            self.launch(server)
        for server in self.servers:
            wait_until(f"{server.folder} serves", lambda server=server: self.serves(server))

    def leader(self):
        return next((server for server in self.servers if self.leads(server)), self.servers[0])

    def followers(self):
        leader = self.leader()
        return [server for server in self.servers if server is not leader]

    def data(self, server):
        return f"{server.folder}/data"

    def wipe(self, server):
        shutil.rmtree(self.data(server), ignore_errors=True)
        self.prepare(server)

    def save(self):
        """A backup, while they run."""
        for server in self.servers:
            shutil.rmtree(f"{server.folder}/saved", ignore_errors=True)
            shutil.copytree(self.data(server), f"{server.folder}/saved")

    def restore(self):
        """While none runs."""
        for server in self.servers:
            shutil.rmtree(self.data(server), ignore_errors=True)
            shutil.copytree(f"{server.folder}/saved", self.data(server))

    def move_leader(self):
        """By the service's own command."""

    def compact(self):
        """What is kept of the past is dropped, by the service's own command."""

    def step(self, server, seconds):
        """The server's wall clock is ahead by so much from now on."""
        subprocess.run([self.clock, "set", str(server.process.pid), str(seconds), "0"], check=True)

    def stop(self):
        for server in self.servers:
            server.kill()


class ZooKeeper(Service):
    port = 2181
    faults = (*SEVERAL, "disk", "leader-disk", "backup", "clock")

    def prepare(self, server):
        number = self.servers.index(server) + 1 if hasattr(self, "servers") else int(server.machine.name[1:])
        os.makedirs(self.data(server), exist_ok=True)
        with open(f"{self.data(server)}/myid", "w", encoding="ascii") as file:
            file.write(str(number))

    def command(self, server):
        lines = [
            f"dataDir={self.data(server)}",
            f"clientPort={self.port}",
            "tickTime=1000",
            "initLimit=20",
            "syncLimit=5",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr",
            *(f"server.{number + 1}={other.address}:2888:3888" for number, other in enumerate(self.servers)),
        ]
        with open(f"{server.folder}/zoo.cfg", "w", encoding="ascii") as file:
            print(*lines, sep="\n", file=file)
        java = "java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData".split()
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [self.clock, "run", *java, "-cp", "/usr/share/java/zookeeper.jar", main, f"{server.folder}/zoo.cfg"]

    def ask(self, server):
        try:
            with socket.create_connection((server.address, self.port), 0.5) as connection:
                connection.settimeout(0.5)
                connection.sendall(b"srvr")
                return b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return ""

    def serves(self, server):
        return "Mode: " in self.ask(server)

    def leads(self, server):
        return "Mode: leader" in self.ask(server)


class Etcd(Service):
    port = 2379
    faults = (*SEVERAL, "leader-move", "disk", "leader-disk", "compact", "backup", "clock")
    token = 0

    @property
    def members(self):
        return ",".join(f"{server.machine.name}=http://{server.address}:2380" for server in self.servers)

    def command(self, server):
        client, peer = f"http://{server.address}:{self.port}", f"http://{server.address}:2380"
        options = {
            "--name": server.machine.name,
            "--data-dir": self.data(server),
            "--initial-cluster": self.members,
            "--initial-cluster-token": f"faults{self.token}",
            "--listen-client-urls": client,
            "--advertise-client-urls": client,
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": peer,
            "--logger": "zap",
            "--log-level": "error",
        }
        return [self.clock, "run", "etcd", *(word for option in options.items() for word in option)]

    def etcdctl(self, server, *words):
        command = ["etcdctl", f"--endpoints=http://{server.address}:{self.port}", "--command-timeout=3s", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"})

    def status(self, server):
        connection = http.client.HTTPConnection(server.address, self.port, timeout=0.5)
        try:
            connection.request("POST", "/v3/maintenance/status", "{}")
            return json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return {}
        finally:
            connection.close()

    def serves(self, server):
        return "leader" in self.status(server)

    def leads(self, server):
        status = self.status(server)
        return status.get("leader", 0) == status.get("header", {}).get("member_id", 1)

    def wipe(self, server):
        self.token += server is self.servers[0]  # another cluster
        super().wipe(server)

    def save(self):
        saved = f"{self.servers[0].folder}/snapshot"
        if os.path.exists(saved):
            os.remove(saved)
        self.etcdctl(self.servers[0], "snapshot", "save", saved)

    def restore(self):
        self.token += 1
        for server in self.servers:
            shutil.rmtree(self.data(server), ignore_errors=True)
            name = server.machine.name
            command = ["snapshot", "restore", f"{self.servers[0].folder}/snapshot", "--name", name, "--data-dir", self.data(server)]
            command += ["--initial-cluster", self.members, "--initial-advertise-peer-urls", f"http://{server.address}:2380"]
            self.etcdctl(server, *command, "--initial-cluster-token", f"faults{self.token}")

    def compact(self):
        """And each member's file is made small, for which it stands still."""
        status = self.status(self.leader())
        self.etcdctl(self.leader(), "compact", "--physical", status.get("header", {}).get("revision", "1"))
        for server in self.servers:
            self.etcdctl(server, "defrag")

    def move_leader(self):
        follower = self.status(self.followers()[0]).get("header", {}).get("member_id", "0")
        self.etcdctl(self.leader(), "move-leader", f"{int(follower):x}")


class Redis(Service):
    """One server, which keeps what it acknowledges."""

    count = 1
    port = 6379
    faults = ("leader-kill", "leader-stop", "all-wipe", "disk", "compact", "backup", "clock")

    def prepare(self, server):
        os.makedirs(self.data(server), exist_ok=True)

    def command(self, server):
        options = f"--port {self.port} --bind {server.address} --protected-mode no --daemonize no --dir {self.data(server)}"
        return [self.clock, "run", "redis-server", *options.split(), "--save", "", *"--appendonly yes --appendfsync always".split()]

    def ask(self, server, *words, port=None):
        command = ["redis-cli", "-h", server.address, "-p", str(port or self.port), *words]
        try:
            return subprocess.run(command, check=False, capture_output=True, text=True, timeout=1).stdout.strip()
        except subprocess.TimeoutExpired:
            return ""

    def compact(self):
        for server in self.servers:
            self.ask(server, "BGREWRITEAOF")

    def serves(self, server):
        return self.ask(server, "PING") == "PONG"


class FiveRedis(Redis):
    """Five that do not know each other, for Redlock."""

    count = 5
    faults = ("leader-kill", "leader-stop", "all-kill", "all-wipe", "disk", "leader-disk", "compact", "clock")


class ReplicatedRedis(Redis):
    """A primary and two replicas, with a Sentinel on each machine, which promote one when the primary is down for a second."""

    count = 3
    sentinel_port = 26379
    faults = (*SEVERAL, "leader-move", "disk", "leader-disk", "compact", "clock")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sentinels = [Server(server.machine, f"{server.folder}/sentinel") for server in self.servers]

    @property
    def addresses(self):
        """Those of the Sentinels."""
        return [f"{server.address}:{self.sentinel_port}" for server in self.servers]

    def start(self):
        super().start()
        if self.sentinels[0].process:
            return  # they tell the servers who is the primary
        primary = self.servers[0].address
        for server in self.servers[1:]:
            self.ask(server, "REPLICAOF", primary, str(self.port))
        for server in self.sentinels:
            with open(f"{server.folder}/conf", "w", encoding="ascii") as file:
                print(f"port {self.sentinel_port}", f"bind {server.address}", f"dir {server.folder}", sep="\n", file=file)
                print("protected-mode no", file=file)
                print(f"sentinel monitor main {primary} {self.port} 2", "sentinel down-after-milliseconds main 1000", sep="\n", file=file)
                print("sentinel failover-timeout main 4000", file=file)
            server.launch(["redis-server", f"{server.folder}/conf", "--sentinel"])
        wait_until("the Sentinels know all", lambda: all(self.knows_all(server) for server in self.servers))

    def knows_all(self, server):
        words = self.ask(server, "SENTINEL", "master", "main", port=self.sentinel_port).split()
        return all(name in words and words[words.index(name) + 1] == "2" for name in ("num-slaves", "num-other-sentinels"))

    def leads(self, server):
        primary = self.ask(self.servers[1], "SENTINEL", "get-master-addr-by-name", "main", port=self.sentinel_port)
        return primary.split() == [server.address, str(self.port)]

    def move_leader(self):
        self.ask(self.servers[1], "SENTINEL", "failover", "main", port=self.sentinel_port)

    def stop(self):
        super().stop()
        for server in self.sentinels:
            server.kill()


class PostgreSQL(Service):
    """One server, with TCP's keepalive, as otherwise the locks of a host that is cut off stay for hours."""

    count = 1
    port = 5432
    faults = ("leader-kill", "leader-stop")
    programs = "/usr/lib/postgresql/15/bin"
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def prepare(self, server):
        shutil.chown(server.folder, "postgres", "postgres")
        options = [f"--pgdata={self.data(server)}", "--auth=trust", "--no-sync"]
        subprocess.run([*self.as_user, f"{self.programs}/initdb", *options], check=True, capture_output=True, cwd=server.folder)
        with open(f"{self.data(server)}/pg_hba.conf", "a", encoding="ascii") as file:
            print("host all all 10.77.0.0/16 trust", file=file)
        with open(f"{self.data(server)}/postgresql.conf", "a", encoding="ascii") as file:
            print(f"listen_addresses = '{server.address}'", "unix_socket_directories = ''", "fsync = off", sep="\n", file=file)
            print("tcp_keepalives_idle = 1", "tcp_keepalives_interval = 1", "tcp_keepalives_count = 2", sep="\n", file=file)
            print(f"tcp_user_timeout = {T * 1000:.0f}", file=file)

    def command(self, server):
        return [*self.as_user, f"{self.programs}/postgres", "-D", self.data(server)]

    def serves(self, server):
        command = [f"{self.programs}/pg_isready", "-h", server.address, "-p", str(self.port), "-t", "1"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


class GlusterFS(Service):
    """One brick. What the other side says nothing for T is given up on, instead of 42 seconds, as otherwise the locks of a host that
    is cut off stay for so long."""

    count = 1
    port = 24007
    volume = "faults"
    faults = ("leader-kill", "leader-stop")

    def prepare(self, server):
        for name in ("state", "logs", "brick"):
            os.makedirs(f"{server.folder}/{name}", exist_ok=True)

    def command(self, server):
        """In namespaces of its own, as its folders are where those of this machine would be; and the client for commands has to be
        where the server is."""
        set_option = f"gluster --mode=script volume set {self.volume}"
        script = f"""
            mount -t proc proc /proc
            rm -f {server.folder}/ready
            mkdir -p /var/lib/glusterd /var/log/glusterfs
            mount --bind {server.folder}/state /var/lib/glusterd
            mount --bind {server.folder}/logs /var/log/glusterfs
            mount -t tmpfs run /run
            mkdir -p /run/gluster
            glusterd --no-daemon &
            until timeout 5 gluster --mode=script volume list; do sleep 0.1; done
            if ! gluster volume info {self.volume}; then
                gluster --mode=script volume create {self.volume} {server.address}:{server.folder}/brick force
                {set_option} network.ping-timeout {T:.0f}
                {set_option} client.tcp-user-timeout {T:.0f}
                {set_option} server.tcp-user-timeout {T:.0f}
                gluster --mode=script volume start {self.volume}
            fi
            touch {server.folder}/ready
            wait
        """
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script]

    def serves(self, server):
        return os.path.exists(f"{server.folder}/ready")
