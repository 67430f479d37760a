#!/usr/bin/python3
"""Looks at, and changes, what a ZooKeeper server holds: zookeeper.py HOST:PORT COMMAND ARGUMENT...

children PATH                  the names below a znode, one a line, claims last and in their order
below PATH                     all znodes below a znode, one a line, as paths below it
claims PATH                    only the claims (names that end in ten digits), in their order
wait-claims PATH N SECONDS     until exactly N claims are there; then prints them
wait-text PATH TEXT SECONDS    prints "looking", and ends when a claim with that text in its data is there
queue PATH                     the claims, each with the data that it has
data PATH                      a znode's data
set PATH DATA                  gives a znode other data
next PATH                      the number of the next claim there
owner PATH                     the session that a znode belongs to, 0 if it is not ephemeral
make PATH [DATA]               a persistent znode, with its parents, which are empty
delete PATH                    with everything below
delete-claims PATH...           all claims of these locks, in one transaction
allow PATH read|all            what everybody may do with a znode; reading includes to change this again
put PATH TEXT                  replaces a znode's data
fill PATH BYTES                data of that length, which begins as that of dlockfs does
crowd PATH PREFIX N            N ephemeral sequential znodes PATH/PREFIX<digits>; prints "crowded", then
                               keeps them until it is told to end
write PATH N                   N changes of a znode's data, transactions that add nothing
hold PATH PREFIX [DATA]        an ephemeral sequential znode PATH/PREFIX<digits>; prints its name, then
                               keeps it until it is told to end
own PATH [DATA]                an ephemeral znode of that name, with its parents; prints "owned", then keeps it
                               until it is told to end
acl PATH                       who may do what with a znode, one a line: scheme, id, rights
only PATH                      who says this, see below, may do everything with a znode from now on, and nobody else anything
intrude PATH                   tries what could take a lock from those in its queue, or bar it; prints what came of each
clock PATH                     makes a znode there for a moment; prints when that was, in seconds since 1970 by the leader's clock
sessions                       how many clients are connected, this one excluded

zookeeper.py serve FILE        does that for whoever connects to the port on 127.0.0.1 that it writes into FILE: the function zookeeper
                               of functions.sh, as a program takes longer to begin than all of these. It is sent the number of words,
                               what is to be in ZOOKEEPER_AUTH, and the words, and answers with the status, the output and the errors,
                               each with a NUL behind it.

From the environment: ZOOKEEPER_AUTH, a user:password of the digest scheme that it is to be.
"""

import contextlib
import io
import os
import re
import signal
import socket
import sys
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, make_acl

CLAIM = re.compile(r"^(?!~held~).*-?[0-9]{10}$")


def sequence(name):
    """Sorts as the test servers number: their counters never wrap."""
    return int(name[-10:]) if CLAIM.search(name) else -1


def children(client, path):
    try:
        return sorted(client.get_children(path), key=sequence)
    except NoNodeError:
        return []


def below(client, path, prefix=""):
    for name in children(client, path):
        yield prefix + name
        yield from below(client, f"{path}/{name}", f"{prefix}{name}/")


def claims(client, path):
    return [name for name in children(client, path) if CLAIM.search(name)]


def queue(client, path):
    """Each claim and its data, in one line."""
    for name in claims(client, path):
        yield name, client.get(f"{path}/{name}")[0].decode().replace("\n", " ")


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


def wait_text(client, path, text, seconds):
    """Ends the program with a message after so many seconds."""
    print("looking", flush=True)
    end = time.monotonic() + seconds
    while not any(text in data for _, data in queue(client, path)):
        if time.monotonic() > end:
            sys.exit(f"{path}: no claim with {text} within {seconds:g} s")
        time.sleep(0.01)


def connect(address):
    identity = os.environ.get("ZOOKEEPER_AUTH")
    client = KazooClient(address, timeout=20, read_only=False, auth_data=[("digest", identity)] if identity else None)
    client.start(timeout=90)
    return client


def next_number(client, path):
    """Of what the server tells, twice the counter less the children, in 32 bits."""
    stat = client.exists(path)
    return ((stat.cversion + stat.numChildren) & 0xFFFFFFFF) // 2 if stat else 0


RIGHTS = (("c", 4), ("d", 8), ("r", 1), ("w", 2), ("a", 16))


def print_acl(client, path):
    for entry in client.get_acls(path)[0]:
        rights = "".join(letter for letter, bit in RIGHTS if entry.perms & bit)
        print(entry.id.scheme, entry.id.id.partition(":")[0], rights)


def keep(line):
    """Until the program is told to end."""
    print(line, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def intrude(client, path):
    parent = path.rpartition("/")[0]
    claim = f"{path}/{children(client, path)[-1]}"
    attempts = {
        "place": lambda: client.create(f"{path}/_c_0-__WRIT__", ephemeral=True, sequence=True),
        "change": lambda: client.set(claim, b""),
        "delete": lambda: client.delete(claim),
        "open claim": lambda: client.set_acls(claim, OPEN_ACL_UNSAFE),
        "open lock": lambda: client.set_acls(path, OPEN_ACL_UNSAFE),
        "open root": lambda: client.set_acls(parent, OPEN_ACL_UNSAFE),
        "bar others": lambda: client.create(f"{parent}/intruder", acl=OPEN_ACL_UNSAFE),
        "mark root": lambda: client.set(parent, b"mine"),
        "list": lambda: client.get_children(path),
        "read": lambda: client.get(claim),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            print(f"{name}: ok")
        except KazooException as error:
            print(f"{name}: {type(error).__name__}")


def answer(connection):
    data = b""
    count = None
    while count is None or data.count(b"\0") < count:
        more = connection.recv(65536)
        if not more:
            return
        data += more
        if count is None and b"\0" in data:
            count = int(data.partition(b"\0")[0]) + 2
    _, os.environ["ZOOKEEPER_AUTH"], *words = (os.fsdecode(word) for word in data.split(b"\0")[:-1])
    output, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            run(*words)
        except SystemExit as end:
            print(end, file=sys.stderr)
            status = 1
        except Exception:  # as if it had been a program's
            traceback.print_exc()
            status = 1
    connection.sendall(os.fsencode(f"{status}\0{output.getvalue()}\0{errors.getvalue()}\0"))


def serve(path):
    """Each in a process of its own, as a client of ZooKeeper has threads."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.closerange(3, 1024)  # files of whoever asked first
    os.chdir("/")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        with open(f"{path}.new", "w", encoding="ascii") as file:
            print(listener.getsockname()[1], file=file)
        os.rename(f"{path}.new", path)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(connection)
                os._exit(0)
            connection.close()


def run(address, command, *arguments):
    client = connect(address)
    if command == "children":
        print("\n".join(children(client, arguments[0])))
    elif command == "below":
        for name in below(client, arguments[0]):
            print(name)
    elif command == "claims":
        print("\n".join(claims(client, arguments[0])))
    elif command == "queue":
        for name, data in queue(client, arguments[0]):
            print(name, data)
    elif command == "wait-claims":
        wait_claims(client, arguments[0], int(arguments[1]), float(arguments[2]))
    elif command == "wait-text":
        wait_text(client, arguments[0], arguments[1], float(arguments[2]))
    elif command == "data":
        print(client.get(arguments[0])[0].decode())
    elif command == "set":
        client.set(arguments[0], os.fsencode(arguments[1]))
    elif command == "owner":
        print(client.get(arguments[0])[1].ephemeralOwner)
    elif command == "next":
        print(next_number(client, arguments[0]))
    elif command == "make":
        if len(arguments) > 1:
            client.create(arguments[0], os.fsencode(arguments[1]), makepath=True)
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
    elif command == "acl":
        print_acl(client, arguments[0])
    elif command == "only":
        client.set_acls(arguments[0], CREATOR_ALL_ACL)
    elif command == "intrude":
        intrude(client, arguments[0])
    elif command == "put":
        client.set(arguments[0], arguments[1].encode())
    elif command == "fill":
        client.set(arguments[0], b"format=1\n".ljust(int(arguments[1]) - 1, b"x") + b"\n")
    elif command == "crowd":
        client.ensure_path(arguments[0])
        path = f"{arguments[0]}/{arguments[1]}"
        for answer in [client.create_async(path, b"", ephemeral=True, sequence=True) for _ in range(int(arguments[2]))]:
            answer.get(timeout=90)
        keep("crowded")
    elif command == "write":
        for answer in [client.set_async(arguments[0], b"") for _ in range(int(arguments[1]))]:
            answer.get(timeout=90)
    elif command == "hold":
        client.ensure_path(arguments[0])
        data = os.fsencode(arguments[2]) if len(arguments) > 2 else b""
        path = client.create(f"{arguments[0]}/{arguments[1]}", data, ephemeral=True, sequence=True)
        keep(path.rsplit("/", 1)[1])
    elif command == "own":
        client.create(arguments[0], os.fsencode(arguments[1]) if len(arguments) > 1 else b"", ephemeral=True, makepath=True)
        keep("owned")
    elif command == "clock":
        client.create(arguments[0])
        print(client.get(arguments[0])[1].ctime // 1000)
        client.delete(arguments[0])
    elif command == "sessions":
        print(len(client.command(b"cons").strip().splitlines()) - 2)
    else:
        sys.exit(__doc__)
    client.stop()
    client.close()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    run(*sys.argv[1:])


if __name__ == "__main__":
    main()
