"""For the benchmarks: what a ZooKeeper server says of itself."""

import socket


def requests(address):
    """What the server has received so far, this question included."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(b"srvr")
        answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    return int(next(line for line in answer.splitlines() if line.startswith("Received")).split()[1])
