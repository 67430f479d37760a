#!/usr/bin/python3
"""A link to a server that can be cut: proxy.py PORT HOST:PORT FOLDER

Listens on 127.0.0.1:PORT and forwards to HOST:PORT. While FOLDER/cut exists, nothing passes: connections stay
open but silent, as on a network that drops packets, and new ones are accepted but not forwarded. While FOLDER/refuse
exists, connections are closed and new ones refused. Writes FOLDER/ready when it listens.
"""

import asyncio
import os
import sys

port, target, folder = int(sys.argv[1]), sys.argv[2].rsplit(":", 1), sys.argv[3]
writers = set()


def is_cut():
    return os.path.exists(os.path.join(folder, "cut"))


def is_refusing():
    return os.path.exists(os.path.join(folder, "refuse"))


async def wait_for_link():
    while is_cut():
        await asyncio.sleep(0.02)


async def forward(reader, writer):
    try:
        while data := await reader.read(65536):
            await wait_for_link()
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        # An end is news as well: it does not pass a cut link.
        await wait_for_link()
        writer.close()


async def on_connection(reader, writer):
    writers.add(writer)
    try:
        await wait_for_link()
        if is_refusing():
            return
        server_reader, server_writer = await asyncio.open_connection(target[0], int(target[1]))
        writers.add(server_writer)
        await asyncio.gather(forward(reader, server_writer), forward(server_reader, writer))
        writers.discard(server_writer)
    except OSError:
        pass
    finally:
        writers.discard(writer)
        writer.close()


async def main():
    server = None
    while True:
        if is_refusing() and server is not None:
            server.close()
            server = None
            for writer in list(writers):
                writer.transport.abort()
        elif not is_refusing() and server is None:
            server = await asyncio.start_server(on_connection, "127.0.0.1", port)
            with open(os.path.join(folder, "ready"), "w", encoding="ascii"):
                pass
        await asyncio.sleep(0.02)


asyncio.run(main())
