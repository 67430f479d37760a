"""What mangle.py and mangle_etcd.py have in common: a link to a server that changes its answers.

Listens on 127.0.0.1:PORT and forwards to HOST:PORT. While FOLDER/what has the name of a change, the answers that it fits are changed
so; "random N" changes one byte of every seventh piece, in a sequence that N gives. FOLDER/done has a line for each that was changed.
All connections end when FOLDER/break comes, which is taken away. Writes FOLDER/ready when it listens.
"""

import os
import random
import socket
import threading
import time

folder = ""
lock = threading.Lock()
dice = {}
connections = set()


def wanted():
    try:
        with open(os.path.join(folder, "what"), encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def note(what):
    with lock, open(os.path.join(folder, "done"), "a", encoding="ascii") as file:
        print(what, file=file)


def shuffle(text):
    """One byte of every seventh piece is another one, if that is wanted."""
    what = wanted()
    if not what.startswith("random"):
        return text
    with lock:
        roll = dice.setdefault(what, random.Random(what))
        if roll.randrange(7) != 0:
            return text
        at = roll.randrange(len(text))
        text = text[:at] + bytes([roll.randrange(256)]) + text[at + 1 :]
    note(what)
    return text


def receive(source, count):
    text = source.recv(count, socket.MSG_WAITALL)
    if len(text) != count:
        raise OSError("the end")
    return text


def end(side):
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def until_end(forward, client, server, kinds):
    try:
        forward(client, server, kinds)
    except OSError:
        pass
    end(client)
    end(server)


def serve(client, target, forward_requests, forward_answers):
    kinds = {}
    server = socket.create_connection(target)
    for side in client, server:
        side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connections.add(client)
    requests = threading.Thread(target=until_end, args=(forward_requests, client, server, kinds), daemon=True)
    requests.start()
    until_end(forward_answers, client, server, kinds)
    connections.discard(client)
    requests.join()
    client.close()
    server.close()


def break_connections():
    path = os.path.join(folder, "break")
    while True:
        time.sleep(0.02)
        if os.path.exists(path):
            for side in list(connections):
                end(side)
            os.unlink(path)


def run(arguments, forward_requests, forward_answers):
    """Both are called for each connection, with the client, the server and a dictionary that they share, until they raise OSError."""
    global folder
    port, server, folder = arguments
    host, server_port = server.rsplit(":", 1)
    listener = socket.create_server(("127.0.0.1", int(port)))
    threading.Thread(target=break_connections, daemon=True).start()
    with open(os.path.join(folder, "ready"), "w", encoding="ascii"):
        pass
    while True:
        client, _ = listener.accept()
        target = (host, int(server_port))
        threading.Thread(target=serve, args=(client, target, forward_requests, forward_answers), daemon=True).start()
