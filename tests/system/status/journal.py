#!/usr/bin/python3
"""The journal's end of its native protocol: journal.py SOCKET. Prints each message as a line of JSON."""

import json
import os
import socket
import sys


def fields(data):
    while data:
        line, _, data = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:  # what has newlines in it comes with its length
            size = int.from_bytes(data[:8], "little")
            value, data = data[8 : 8 + size], data[8 + size + 1 :]
        yield name.decode(), value.decode(errors="backslashreplace")


with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
    end.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o666)  # as that of systemd: the daemon may be of another user
    print("listening", flush=True)
    while True:
        print(json.dumps(dict(fields(end.recv(1 << 20)))), flush=True)
