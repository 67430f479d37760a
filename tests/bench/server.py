"""What a ZooKeeper server says of itself."""

import socket


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
