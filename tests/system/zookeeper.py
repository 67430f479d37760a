#!/usr/bin/python3
"""Looks at, and changes, what a ZooKeeper server holds: zookeeper.py HOST:PORT COMMAND ARGUMENT...

children PATH                  the names below a znode, one a line, claims last and in their order
claims PATH                    only the claims (names that end in ten digits), in their order
wait-claims PATH N SECONDS     until exactly N claims are there; then prints them
queue PATH                     the claims, each with the data that it has
data PATH                      a znode's data
set PATH DATA                  gives a znode other data
owner PATH                     the session that a znode belongs to, 0 if it is not ephemeral
make PATH                      an empty persistent znode, with its parents
delete PATH                    with everything below
delete-claims PATH...           all claims of these locks, in one transaction
allow PATH read|all            what everybody may do with a znode; reading includes to change this again
put PATH TEXT                  replaces a znode's data
fill PATH BYTES                data of that length, which begins as that of dlockfs does
crowd PATH PREFIX N            N sequential znodes PATH/PREFIX<digits>, which end with no session
write PATH N                   N changes of a znode's data, transactions that add nothing
hold PATH PREFIX [DATA]        an ephemeral sequential znode PATH/PREFIX<digits>; prints its name, then
                               keeps it until it is told to end
sessions                       how many clients are connected, this one excluded
"""

import os
import re
import signal
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import make_acl

CLAIM = re.compile(r"-?[0-9]{10}$")


def sequence(name):
    """Sorts as the test servers number: their counters never wrap."""
    return int(name[-10:]) if CLAIM.search(name) else -1


def children(client, path):
    try:
        return sorted(client.get_children(path), key=sequence)
    except NoNodeError:
        return []


def claims(client, path):
    return [name for name in children(client, path) if CLAIM.search(name)]


def wait_claims(client, path, number, seconds):
    """Returns the names, or ends the program with a message after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        found = claims(client, path)
        if len(found) == number:
            return found
        if time.monotonic() > end:
            sys.exit(f"{path}: {len(found)} claims instead of {number} within {seconds:g} s: {found}")
        time.sleep(0.01)


def connect(address):
    client = KazooClient(address, timeout=20, read_only=False)
    client.start(timeout=30)
    return client


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    address, command, *arguments = sys.argv[1:]
    client = connect(address)
    if command == "children":
        print("\n".join(children(client, arguments[0])))
    elif command == "claims":
        print("\n".join(claims(client, arguments[0])))
    elif command == "queue":
        for name in claims(client, arguments[0]):
            print(name, client.get(f"{arguments[0]}/{name}")[0].decode().replace("\n", " "))
    elif command == "wait-claims":
        wait_claims(client, arguments[0], int(arguments[1]), float(arguments[2]))
    elif command == "data":
        print(client.get(arguments[0])[0].decode())
    elif command == "set":
        client.set(arguments[0], os.fsencode(arguments[1]))
    elif command == "owner":
        print(client.get(arguments[0])[1].ephemeralOwner)
    elif command == "make":
        client.ensure_path(arguments[0])
    elif command == "delete":
        client.delete(arguments[0], recursive=True)
    elif command == "delete-claims":
        transaction = client.transaction()
        for path in arguments:
            for name in claims(client, path):
                transaction.delete(f"{path}/{name}")
        if failed := [result for result in transaction.commit() if result is not True]:
            sys.exit(f"not deleted: {failed}")
    elif command == "allow":
        everything = arguments[1] == "all"
        client.set_acls(arguments[0], [make_acl("world", "anyone", all=everything, read=True, admin=True)])
    elif command == "put":
        client.set(arguments[0], arguments[1].encode())
    elif command == "fill":
        client.set(arguments[0], b"format=1\n".ljust(int(arguments[1]) - 1, b"x") + b"\n")
    elif command == "crowd":
        client.ensure_path(arguments[0])
        path = f"{arguments[0]}/{arguments[1]}"
        for answer in [client.create_async(path, b"", sequence=True) for _ in range(int(arguments[2]))]:
            answer.get(timeout=30)
    elif command == "write":
        for answer in [client.set_async(arguments[0], b"") for _ in range(int(arguments[1]))]:
            answer.get(timeout=30)
    elif command == "hold":
        client.ensure_path(arguments[0])
        data = os.fsencode(arguments[2]) if len(arguments) > 2 else b""
        path = client.create(f"{arguments[0]}/{arguments[1]}", data, ephemeral=True, sequence=True)
        print(path.rsplit("/", 1)[1], flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
    elif command == "sessions":
        print(len(client.command(b"cons").strip().splitlines()) - 2)
    else:
        sys.exit(__doc__)
    client.stop()
    client.close()


if __name__ == "__main__":
    main()
