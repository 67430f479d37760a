# SPDX-License-Identifier: Apache-2.0
"""The register that holders write to: one for each lock, with the fencing tokens that it has seen. It serves on a socket of the
file system, which passes no link that a fault cuts.

A request is a JSON line with `lock`, `value` and `token` (or null). The answer has `at`, the time of the change by
CLOCK_MONOTONIC, and what the value `was`, but if the token is smaller than one that was seen."""

import json
import socket
import threading
import time


class Register:
    def __init__(self, path):
        self.guard = threading.Lock()
        self.locks = {}  # by name: the value, the greatest token
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def clear(self):
        """Another history begins."""
        with self.guard:
            self.locks = {}

    def _accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rw", encoding="utf-8") as file:
                for line in file:
                    print(json.dumps(self._write(**json.loads(line))), file=file, flush=True)
        except OSError:
            pass  # the writer was killed

    def _write(self, lock, value, token):
        with self.guard:
            at = time.monotonic_ns()
            was, seen = self.locks.get(lock, (None, None))
            if token is not None and seen is not None and token < seen:
                return {"at": at}
            self.locks[lock] = value, seen if token is None else token
            return {"at": at, "was": was}
