#!/usr/bin/python3
"""A client that takes the old exclusive lock, a unique ephemeral node: it makes the node, or waits until that is gone.

    ephemeral.py ADDRESS ZNODE TEXT

Prints "exists" when somebody else has it, "made" when it has made it, and takes the node away on SIGTERM.
"""
import signal
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError


def main():
    address, znode, text = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    client = KazooClient(hosts=address)
    client.start(timeout=60)
    while True:
        try:
            client.create(znode, text.encode(), ephemeral=True)
            break
        except NodeExistsError:
            gone = threading.Event()
            if client.exists(znode, watch=lambda event, gone=gone: gone.set()):
                print("exists", flush=True)
                gone.wait(120)
    print("made", flush=True)
    signal.sigwait({signal.SIGTERM})
    client.stop()


main()
