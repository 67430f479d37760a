#!/usr/bin/python3
"""answers.py FOLDER: servers on loopback that answer what they are sent, each in its way; FOLDER/WAY.port has the port of each."""
import pathlib
import socket
import ssl
import sys
import threading

STATISTICS = b"Zookeeper version: 3.8.0\nLatency min/avg/max: 0/0.0/0\nZxid: 0x1\nMode: %s\nNode count: 5\n"
ANSWERS = {
    "follower": (STATISTICS % b"follower", True),
    "leader": (STATISTICS % b"leader", True),
    "outside": (b"This ZooKeeper instance is not currently serving requests\n", True),
    "unlisted": (b"srvr is not executed because it is not in the whitelist.\n", True),
    "other": (b"-ERR unknown command 'srvr'\r\n", False),
    "alert": (bytes.fromhex("15030300020228"), True),
    "hostile": (b"\x1b[31mHTTP/1.1 400\r\n" + b"\xff" * 9000, True),
    "closes": (b"", True),
    "silent": (b"", False),
    "pong": (b"+PONG\r\n", False),
    "password": (b"-NOAUTH Authentication required.\r\n", False),
    "loading": (b"-LOADING Redis is loading the dataset in memory\r\n", False),
    "tls": (b"+PONG\r\n", False),
}


def answer(connection, way):
    text, closes = ANSWERS[way]
    try:
        if way == "tls":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.pem", folder / "server.key")
            connection = context.wrap_socket(connection, server_side=True)
        connection.recv(4096)
        connection.sendall(text)
        if closes:
            connection.close()
        else:
            connection.recv(1)
    except OSError:
        connection.close()


def serve(listener, way):
    kept = []
    while True:
        connection, _ = listener.accept()
        kept.append(connection)
        threading.Thread(target=answer, args=(connection, way), daemon=True).start()


folder = pathlib.Path(sys.argv[1])
for each in ANSWERS:
    sock = socket.create_server(("127.0.0.1", 0), backlog=16)
    (folder / f"{each}.port").write_text(str(sock.getsockname()[1]))
    threading.Thread(target=serve, args=(sock, each), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
