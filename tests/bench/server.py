"""What a ZooKeeper server says of itself."""

import socket
import time

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


def requests_settled(address):
    """The same, once the server gets no more of them: releases arrive after their call has returned."""
    limit = time.monotonic() + SETTLE_LIMIT_S
    count, before = requests(address), 0
    questions = 0
    while count - before > 1 and time.monotonic() < limit:
        time.sleep(SETTLE_S)
        before, count = count, requests(address)
        questions += 1
    return count - questions
