#!/usr/bin/python3
"""A link to a server that can be cut: proxy.py PORT HOST:PORT FOLDER

Listens on 127.0.0.1:PORT and forwards to HOST:PORT. While FOLDER/cut exists, nothing passes: connections stay
open but silent, as on a network that drops packets, and new ones are accepted but not forwarded. While FOLDER/refuse
exists, connections are closed and new ones refused. Connections that are made while FOLDER/delay exists take so many
milliseconds longer in each direction. While FOLDER/hold-ends exists, that one side closes a connection does not pass. Writes FOLDER/ready
when it listens. FOLDER/connections has a line for each connection over which something was sent: its number, from 1, and when that
began, in milliseconds since 1970. While FOLDER/hang-NUMBER exists, nothing passes that one.
"""

import asyncio
import os
import sys
import time

port, target, folder = int(sys.argv[1]), sys.argv[2].rsplit(":", 1), sys.argv[3]
writers = set()


def is_cut():
    return os.path.exists(os.path.join(folder, "cut"))


def is_refusing():
    return os.path.exists(os.path.join(folder, "refuse"))


async def wait_for_link(number=0):
    while is_cut() or os.path.exists(os.path.join(folder, f"hang-{number}")):
        await asyncio.sleep(0.02)


def count_connection():
    """Returns the number of the new one."""
    with open(os.path.join(folder, "connections"), "a+", encoding="ascii") as file:
        file.seek(0)
        number = len(file.readlines()) + 1
        print(number, int(1000 * time.time()), file=file)
    return number


def delay():
    """In seconds."""
    try:
        with open(os.path.join(folder, "delay"), encoding="ascii") as file:
            return float(file.read()) / 1000
    except FileNotFoundError:
        return 0


async def receive(reader, queue, seconds):
    """Puts what comes into the queue, with the time at which it is to go on."""
    data = b"first"
    while data:
        try:
            data = await reader.read(65536)
        except ConnectionError:
            data = b""
        await queue.put((asyncio.get_running_loop().time() + seconds, data))


async def forward(reader, writer, number, first=b""):
    queue = asyncio.Queue()
    if first:
        await queue.put((asyncio.get_running_loop().time() + delay(), first))
    receiving = asyncio.create_task(receive(reader, queue, delay()))
    try:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if not data:
                break
            await wait_for_link(number)
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        receiving.cancel()
        # An end is news as well: it does not pass a cut link.
        await wait_for_link(number)
        while os.path.exists(os.path.join(folder, "hold-ends")):
            await asyncio.sleep(0.02)
        writer.close()


async def on_connection(reader, writer):
    writers.add(writer)
    try:
        first = await reader.read(65536)
        if not first:
            return  # it only looked whether there is a link
        number = count_connection()
        await wait_for_link()
        if is_refusing():
            return
        server_reader, server_writer = await asyncio.open_connection(target[0], int(target[1]))
        writers.add(server_writer)
        await asyncio.gather(forward(reader, server_writer, number, first), forward(server_reader, writer, number))
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
