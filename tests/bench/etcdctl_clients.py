# SPDX-License-Identifier: Apache-2.0
"""etcdctl_clients.py URL: a driver for `etcdctl lock NAME`, a process for each lock that is taken, as in scripts."""

import os
import signal
import subprocess
import sys

import clients


class Lock:
    def __init__(self, name):
        self.command = ["etcdctl", f"--endpoints={sys.argv[1]}", "lock", f"ctl-{name}"]
        self.process = None

    def acquire(self, shared, wait_s):
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, "ETCDCTL_API": "3"}
        )
        if not self.process.stdout.readline():  # it writes the key when it has the lock
            raise RuntimeError("etcdctl ended")
        return True

    def release(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.process.stdout.close()


clients.serve(lambda: clients.Connection(Lock))
