"""What a server of ZooKeeper, etcd or Redis says of itself."""

import re
import socket
import time
import urllib.request

SETTLE_S = 0.02
SETTLE_LIMIT_S = 5


def ask(address, word):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def metrics(address):
    return dict(line.split("\t", 1) for line in ask(address, b"mntr").splitlines() if "\t" in line)


def requests(address):
    """What the server has received so far, this question included."""
    answer = ask(address, b"srvr")
    return int(next(line for line in answer.splitlines() if line.startswith("Received")).split()[1])


def etcd_metric(address, name):
    """The sum over all labels."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return sum(int(float(number)) for number in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))


class Server:
    def sets(self):
        """How many SETs of Redis it has received."""
        return 0


class ZooKeeper(Server):
    QUESTION = 1  # how many requests the question itself is

    def __init__(self, address):
        self.address = address

    def requests(self):
        return requests(self.address)


class Etcd(Server):
    """Counts calls, and messages on streams, such as one that sets up a watch."""

    QUESTION = 0

    def __init__(self, address):
        self.address = address

    def requests(self):
        return etcd_metric(self.address, "grpc_server_msg_received_total")


class Redis(Server):
    """Counts what clients send: all commands but those of this file, and those that only scripts of locks call."""

    QUESTION = 0
    UNCOUNTED = {"get", "del", "publish", "pexpire", "incr", "pttl", "info", "quit"}

    def __init__(self, address):
        self.address = address

    def calls(self):
        """How often each command was called, also by scripts."""
        text = ask(self.address, b"INFO commandstats\r\nQUIT\r\n")
        return {name: int(count) for name, count in re.findall(r"^cmdstat_(\S+):calls=(\d+)", text, re.M)}

    def requests(self):
        return sum(count for name, count in self.calls().items() if name not in self.UNCOUNTED)

    def sets(self):
        return self.calls().get("set", 0)


def requests_settled(server):
    """What the server has received, once it gets no more: releases arrive after their call has returned."""
    limit = time.monotonic() + SETTLE_LIMIT_S
    count, before = server.requests(), -1
    questions = 0
    while count - before > server.QUESTION and time.monotonic() < limit:
        time.sleep(SETTLE_S)
        before, count = count, server.requests()
        questions += server.QUESTION
    return count - questions
