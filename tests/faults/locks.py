# SPDX-License-Identifier: Apache-2.0
"""The contenders' locks, each used as its documentation says, and as carefully as that allows: who can ask whether a lock is still
held, asks; who is told of its end by listeners or by its own clock, listens and looks.

A class has, besides what is in Lock below, as `servers` addresses HOST:PORT."""

import base64
import ctypes
import fcntl
import http.client
import json
import os
import queue
import random
import select
import signal
import subprocess
import threading
import time
import uuid

from session import T

CALL_S = 1.0  # for an answer of servers that should come at once
children = []


class Failed(Exception):
    """The call, or the connection; whoever has called begins anew."""


def end(status):
    """Of this process, whatever its threads wait for."""
    for child in children:
        child.kill()
    os._exit(status)


class Lock:
    def __init__(self, config):
        self.servers = config["servers"]

    def acquire(self, name):
        """Waits for the lock. Returns the fencing token, or None where there is none."""

    def lost(self):
        """As soon as it is known that the lock is lost: how that is known. Does not wait."""

    def pause(self, seconds):
        """While the lock is held."""
        time.sleep(seconds)

    def release(self):
        """Also a lock that is lost."""

    def close(self):
        """The connection: nothing that was acquired through it is held any longer."""


class Renewed(Lock):
    """One that has to be renewed, in a thread, each third of T; it is lost T after the last time that this was begun well."""

    def __init__(self, config):
        super().__init__(config)
        self.over = None
        self.deadline = 0
        self.ended = threading.Event()

    def renew(self):
        """Returns for how long, from when it began, or raises Failed if it may be tried again; may set `over`."""

    def start_renewing(self, deadline):
        self.over = None
        self.deadline = deadline
        self.ended = threading.Event()
        threading.Thread(target=self._renew, args=[self.ended], daemon=True).start()

    def _renew(self, ended):
        while not ended.wait(T / 3) and not self.over:
            begin = time.monotonic()
            try:
                seconds = self.renew()
            except Failed:
                ended.wait(0.1)
                continue
            if not ended.is_set():
                self.deadline = begin + seconds

    def lost(self):
        return self.over or ("its time is over" if time.monotonic() > self.deadline else None)

    def stop_renewing(self):
        self.ended.set()


class Flock(Lock):
    """flock(2) on a file of a mount."""

    def __init__(self, config):
        super().__init__(config)
        self.mount = config["mount"]
        self.file = None

    def acquire(self, name):
        try:
            self.file = os.open(f"{self.mount}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self.file, fcntl.LOCK_EX)
            return self.granted()
        except OSError as error:
            self.close()
            raise Failed(error) from error

    def granted(self):
        """The lock is held. Returns the token."""

    def release(self):
        self.close()

    def close(self):
        if self.file is not None:
            try:
                os.close(self.file)
            except OSError:
                pass  # of a mount that is gone
            self.file = None


class Dlockfs(Flock):
    """With `on_lost = SIGUSR1`. Half of all rely on the signal alone, the others on poll(2) alone."""

    TOKEN = 0x8008DF01  # DLOCKFS_IOC_TOKEN
    told = None

    def __init__(self, config):
        super().__init__(config)
        self.by_signal = config["seed"] % 2
        signal.signal(signal.SIGUSR1, self.on_lost)

    @staticmethod
    def on_lost(*_):
        Dlockfs.told = "signal"

    def granted(self):
        Dlockfs.told = None
        return self.token()

    def token(self):
        token = ctypes.c_uint64()
        fcntl.ioctl(self.file, self.TOKEN, token)
        return token.value

    def lost(self):
        if self.by_signal:
            return self.told
        poll = select.poll()
        poll.register(self.file, select.POLLERR)
        return "poll" if poll.poll(0) else None


class DlockfsNoTokens(Dlockfs):
    """With several servers of Redis it has none."""

    def token(self):
        return None


class GlusterFlock(Flock):
    """On a file of GlusterFS. Who holds asks by fsync(2), each sixth of T: a file whose locks the servers have dropped fails."""

    def __init__(self, config):
        super().__init__(config)
        self.over = None
        self.ended = threading.Event()

    def granted(self):
        self.over = None
        self.ended = threading.Event()
        threading.Thread(target=self.ask, args=[self.ended, self.file], daemon=True).start()

    def ask(self, ended, file):
        while not ended.wait(T / 6):
            try:
                os.pwrite(file, b"held", 0)
                os.fsync(file)
            except OSError as error:
                if not ended.is_set():
                    self.over = str(error)
                return

    def lost(self):
        return self.over

    def close(self):
        self.ended.set()
        super().close()


class Kazoo(Lock):
    """kazoo's Lock, with a listener: no longer held from SUSPENDED on."""

    def __init__(self, config):
        from kazoo.client import KazooClient

        super().__init__(config)
        self.state = None
        self.lock = None
        self.client = KazooClient(",".join(self.servers), timeout=T)
        self.client.add_listener(self.on_state)
        try:
            self.client.start(10)
        except Exception as error:
            self.close()
            raise Failed(error) from error

    def on_state(self, state):
        self.state = None if state == "CONNECTED" and self.state is None else state if state != "CONNECTED" else self.state

    def acquire(self, name):
        session = self.client.client_id
        self.lock = self.client.Lock(f"/kazoo/{name}", self.servers[0])
        try:
            self.lock.acquire()
        except Exception as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        self.state = None
        if not self.client.connected or self.client.client_id != session:
            self.state = "not connected"

    def lost(self):
        return self.state

    def release(self):
        if self.state:
            return  # close() ends the session
        try:
            self.lock.release()
        except Exception as error:
            raise Failed(f"{type(error).__name__}: {error}") from error

    def close(self):
        self.client.stop()
        self.client.close()


class Curator(Lock):
    """Curator's InterProcessMutex, in a program of its own (CuratorLock.java), which listens to the connection's state. It goes on
    for as long as this process, as Curator connects again by itself."""

    program = None
    answers = queue.SimpleQueue()
    state = None

    def __init__(self, config):
        super().__init__(config)
        if self.program is None or self.program.poll() is not None:
            Curator.program = subprocess.Popen(
                [*config["java"], "CuratorLock", ",".join(self.servers), str(int(T * 1000))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            children.append(self.program)
            threading.Thread(target=self.read, args=[self.program.stdout], daemon=True).start()
            self.answer()

    @classmethod
    def read(cls, output):
        for line in output:
            if line.startswith("told"):
                cls.state = line.strip()
            else:
                cls.state = None
                cls.answers.put(line.strip())
        cls.state = "CuratorLock has ended"
        cls.answers.put(cls.state)

    def ask(self, *words):
        try:
            print(*words, file=self.program.stdin, flush=True)
        except OSError as error:
            raise Failed(error) from error
        self.answer()

    def answer(self):
        answer = self.answers.get()
        if answer != "ok":
            raise Failed(answer)

    def acquire(self, name):
        self.ask("acquire", name)

    def lost(self):
        return self.state

    def release(self):
        self.ask("release")


class EtcdApi(Renewed):
    """etcd's lock API, by its JSON gateway, with a lease that is kept alive: no longer held when that cannot be known."""

    def __init__(self, config):
        super().__init__(config)
        self.first = config["seed"]
        self.key = self.waiting = None
        begin = time.monotonic()
        answer = self.ask("/v3/lease/grant", TTL=int(T))
        self.lease = answer["ID"]
        self.start_renewing(begin + int(answer["TTL"]))
        threading.Thread(target=self.give_up, args=[self.ended], daemon=True).start()

    def connect(self, timeout):
        return http.client.HTTPConnection(self.servers[self.first % len(self.servers)], timeout=timeout)

    @staticmethod
    def post(connection, path, **values):
        connection.request("POST", path, json.dumps(values))
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise Failed(f"{path}: {answer.status} {text.strip()}")
        return json.loads(text)

    def ask(self, path, **values):
        for _ in self.servers:
            connection = self.connect(CALL_S)
            try:
                return self.post(connection, path, **values)
            except (OSError, http.client.HTTPException, ValueError, Failed) as error:
                reason = error
                self.first += 1
            finally:
                connection.close()
        raise Failed(reason)

    def renew(self):
        seconds = int(self.ask("/v3/lease/keepalive", ID=self.lease).get("result", {}).get("TTL", 0))
        if seconds <= 0:
            self.over = "the lease is over"
        return seconds

    def give_up(self, ended):
        """A waiter whose lease is over waits no longer."""
        while not ended.wait(0.1):
            if self.lost() and self.waiting and self.waiting.sock:
                try:
                    self.waiting.sock.shutdown(2)
                except OSError:
                    pass

    def acquire(self, name):
        self.waiting = self.connect(None)
        try:
            name = base64.b64encode(name.encode()).decode()
            answer = self.post(self.waiting, "/v3/lock/lock", name=name, lease=self.lease)
            self.key = answer["key"]
            return int(answer["header"]["revision"])
        except (OSError, http.client.HTTPException, ValueError, KeyError, AttributeError) as error:
            raise Failed(error) from error
        finally:
            self.waiting.close()
            self.waiting = None

    def release(self):
        self.ask("/v3/lock/unlock", key=self.key)

    def close(self):
        self.stop_renewing()
        try:
            self.ask("/v3/lease/revoke", ID=self.lease)
        except Failed:
            pass


class EtcdctlLock(Lock):
    """`etcdctl lock NAME COMMAND`: this process does what the command would do, for as long as that lives."""

    COMMAND = 'echo "$ETCD_LOCK_REV $$"; exec sleep infinity'
    program = None
    command = 0  # its process

    def acquire(self, name):
        self.program = subprocess.Popen(
            ["etcdctl", "--endpoints=" + ",".join(self.servers), "lock", f"--ttl={int(T)}", name, "--", "sh", "-c", self.COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ETCDCTL_API": "3"},
        )
        words = self.program.stdout.readline().split()
        if not words:
            self.close()
            raise Failed("etcdctl has ended")
        self.command = int(words[1])
        return int(words[0])

    def lost(self):
        poll = select.poll()
        poll.register(self.program.stdout, 0)
        return "the command has ended" if poll.poll(0) else None

    def end_command(self):
        try:
            os.kill(self.command, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has ended by itself

    def release(self):
        self.end_command()
        try:
            self.program.wait(3 * T)
        except subprocess.TimeoutExpired as error:
            self.close()
            raise Failed("etcdctl does not end") from error

    def close(self):
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.wait()


class RedisLock(Renewed):
    """redis-py's Lock with a timeout, which is reacquired each third of it."""

    def __init__(self, config):
        super().__init__(config)
        self.lock = None

    def client(self):
        import redis

        host, port = self.servers[0].split(":")
        return redis.Redis(host, int(port), socket_timeout=CALL_S, socket_connect_timeout=CALL_S)

    def acquire(self, name):
        import redis

        try:
            self.lock = self.client().lock(name, timeout=T, sleep=0.05, thread_local=False)
            begin = time.monotonic()
            while not self.lock.acquire(blocking=False):
                time.sleep(0.05)
                begin = time.monotonic()
        except (redis.RedisError, OSError) as error:
            raise Failed(error) from error
        self.start_renewing(begin + T)

    def renew(self):
        import redis

        try:
            self.lock.reacquire()
        except redis.exceptions.LockError:
            self.over = "LockNotOwnedError"
        except (redis.RedisError, OSError) as error:
            raise Failed(error) from error
        return T

    def release(self):
        import redis

        self.stop_renewing()
        try:
            self.lock.release()
        except (redis.RedisError, OSError) as error:
            raise Failed(error) from error

    def close(self):
        self.stop_renewing()


class RedisSentinelLock(RedisLock):
    """The same, with the primary that Sentinel names: the first servers are those of Sentinel."""

    def client(self):
        from redis.sentinel import Sentinel

        sentinels = [(host, int(port)) for host, port in (server.split(":") for server in self.servers)]
        return Sentinel(sentinels, socket_timeout=CALL_S).master_for("main", socket_timeout=CALL_S)


class Redlock(Renewed):
    """Redlock as its page describes it, with the extension: most of the servers, within the validity time."""

    DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
    EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
    DRIFT = 0.01 * T + 0.002
    EACH_S = 0.05  # for one server

    def __init__(self, config):
        import redis

        super().__init__(config)
        self.name = self.value = None
        addresses = [server.split(":") for server in self.servers]
        limits = {"socket_timeout": self.EACH_S, "socket_connect_timeout": self.EACH_S}
        self.clients = [redis.Redis(host, int(port), **limits) for host, port in addresses]

    def most(self, call):
        """How many servers say yes, at least a majority, or 0."""
        import redis

        count = 0
        for client in self.clients:
            try:
                count += bool(call(client))
            except (redis.RedisError, OSError):
                pass
        return count if count > len(self.clients) // 2 else 0

    def acquire(self, name):
        self.name = name
        milliseconds = int(T * 1000)
        while True:
            self.value = str(uuid.uuid4())
            begin = time.monotonic()
            granted = self.most(lambda client: client.set(name, self.value, nx=True, px=milliseconds))
            if granted and time.monotonic() < begin + T - self.DRIFT:
                self.start_renewing(begin + T - self.DRIFT)
                return
            self.most(lambda client: client.eval(self.DELETE, 1, name, self.value))
            time.sleep(random.uniform(0.02, 0.2))

    def renew(self):
        if not self.most(lambda client: client.eval(self.EXTEND, 1, self.name, self.value, int(T * 1000))):
            raise Failed("not by most")
        return T - self.DRIFT

    def release(self):
        self.stop_renewing()
        if not self.most(lambda client: client.eval(self.DELETE, 1, self.name, self.value)):
            raise Failed("not by most")

    def close(self):
        self.stop_renewing()


class Postgres(Lock):
    """pg_advisory_lock of a session, which is asked for something each sixth of T while the lock is held; with TCP's keepalive on both
    sides, as otherwise the locks of a host that is cut off stay for hours."""

    def __init__(self, config):
        import psycopg2

        super().__init__(config)
        self.over = None
        self.ended = threading.Event()
        host, port = self.servers[0].split(":")
        try:
            self.connection = psycopg2.connect(
                host=host,
                port=port,
                user="postgres",
                dbname="postgres",
                connect_timeout=3,
                keepalives_idle=1,
                keepalives_interval=1,
                keepalives_count=2,
                tcp_user_timeout=int(T * 1000),
            )
        except psycopg2.Error as error:
            raise Failed(error) from error
        self.connection.autocommit = True

    def execute(self, query, *values):
        import psycopg2

        try:
            with self.connection.cursor() as cursor:
                cursor.execute(query, values)
        except psycopg2.Error as error:
            raise Failed(error) from error

    def acquire(self, name):
        self.name = name
        self.execute("select pg_advisory_lock(hashtext(%s))", name)
        self.over = None
        self.ended = threading.Event()
        threading.Thread(target=self.ask, args=[self.ended], daemon=True).start()

    def ask(self, ended):
        while not ended.wait(T / 6):
            try:
                self.execute("select 1")
            except Failed as error:
                self.over = str(error).split("\n", maxsplit=1)[0]
                return

    def lost(self):
        return self.over

    def release(self):
        self.ended.set()
        if not self.over:
            self.execute("select pg_advisory_unlock(hashtext(%s))", self.name)

    def close(self):
        self.ended.set()
        self.connection.close()
