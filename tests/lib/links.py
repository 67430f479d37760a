#!/usr/bin/python3
"""Links between servers that can be cut: links.py FOLDER PORT:TARGET:NAME[:TOLD:INSTEAD]...

For each link, listens on 127.0.0.1:PORT and forwards to 127.0.0.1:TARGET. While FOLDER/NAME/cut exists, nothing passes
the links of that name: connections stay open but silent, as on a network that drops packets. While FOLDER/NAME/mute
exists, nothing passes them from who has connected; what comes back does. A connection to a target that does not listen
yet waits for it: a server that sees its leader hang up would begin another election.
Where a server says at the beginning that it is at 127.0.0.1:TOLD, the target is told 127.0.0.1:INSTEAD, as long a number.
Writes FOLDER/links-ready when it listens.
"""

import asyncio
import os
import sys

STEP = 0.02
folder = sys.argv[1]


async def wait_for_link(name, *faults):
    while any(os.path.exists(os.path.join(folder, name, fault)) for fault in ("cut", *faults)):
        await asyncio.sleep(STEP)


async def connect(port, name):
    while True:
        await wait_for_link(name)
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(STEP)


async def forward(reader, writer, name, faults=(), told=b"", instead=b""):
    try:
        while data := await reader.read(65536):
            await wait_for_link(name, *faults)
            writer.write(data.replace(told, instead, 1) if told else data)
            told = b""
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        # An end is news as well: it does not pass a cut link.
        await wait_for_link(name, *faults)
        writer.close()


async def listen(port, target, name, *addresses):
    addresses = [b"127.0.0.1:" + address.encode() for address in addresses]

    async def on_connection(reader, writer):
        target_reader, target_writer = await connect(target, name)
        await asyncio.gather(forward(reader, target_writer, name, ["mute"], *addresses), forward(target_reader, writer, name))

    return await asyncio.start_server(on_connection, "127.0.0.1", port)


async def main():
    servers = []
    for link in sys.argv[2:]:
        port, target, *name_and_addresses = link.split(":")
        servers.append(await listen(int(port), int(target), *name_and_addresses))
    with open(os.path.join(folder, "links-ready"), "w", encoding="ascii"):
        pass
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
