#!/usr/bin/python3
"""Links among the members of etcd that can be cut: etcd_links.py FOLDER PORT:TARGET:NAME...

Listens on 127.0.0.1:PORT and forwards to 127.0.0.1:TARGET, where the member NAME listens to the others. While FOLDER/NAME/cut
exists, nothing passes that goes to this member, and nothing that comes from it: connections stay open but silent, as on a network
that drops packets. Whose a connection is, is found out by its socket: FOLDER/pids/NAME has the process id. Writes FOLDER/links-ready.
"""

import asyncio
import contextlib
import os
import sys

STEP = 0.02
folder = sys.argv[1]
names = [argument.split(":")[2] for argument in sys.argv[2:]]


def inode_of(port, target):
    """Of the socket that is bound to the port and connected to the target."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            if (int(words[1].split(":")[1], 16), int(words[2].split(":")[1], 16)) == (port, target):
                return words[9]
    return None


def owner_of(port, target):
    wanted = f"socket:[{inode_of(port, target)}]"
    for name in names:
        with contextlib.suppress(OSError), open(f"{folder}/pids/{name}", encoding="ascii") as file:
            descriptors = f"/proc/{file.read().split()[0]}/fd"
            for descriptor in os.listdir(descriptors):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{descriptors}/{descriptor}") == wanted:
                        return name
    return None


async def wait_for_links(ends):
    while any(os.path.exists(f"{folder}/{name}/cut") for name in ends):
        await asyncio.sleep(STEP)


async def forward(reader, writer, ends):
    try:
        while data := await reader.read(65536):
            await wait_for_links(ends)
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        await wait_for_links(ends)  # an end is news as well
        writer.close()


async def listen(port, target, name):
    async def on_connection(reader, writer):
        ends = {name, owner_of(writer.get_extra_info("peername")[1], int(port))} - {None}
        await wait_for_links(ends)
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", int(target))
        except OSError:
            writer.close()
            return
        await asyncio.gather(forward(reader, target_writer, ends), forward(target_reader, writer, ends))

    return await asyncio.start_server(on_connection, "127.0.0.1", int(port))


async def main():
    servers = [await listen(*argument.split(":")) for argument in sys.argv[2:]]
    with open(f"{folder}/links-ready", "w", encoding="ascii"):
        pass
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
