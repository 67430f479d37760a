#!/usr/bin/python3
"""What calls about lock files say while their user waits for too much: files_limits.py FOLDER GO

FOLDER is a directory of style = file, where this program makes names. It prints "ready", waits until the file GO is there, and
makes each call once: prints CALL and "ok", or the name of its errno.
"""

import errno
import fcntl
import os
import re
import struct
import sys
import time

folder, go = sys.argv[1:]
os.chdir(folder)


def make(name):
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


fd = make("own")
os.write(fd, b"text")
os.close(make("old"))
os.mkdir("directory")
queue = os.open(f"../.dlockfs/locks/{os.path.basename(folder)}/old", os.O_RDONLY)
claim = re.search(rb" claim=(\S+)", os.read(queue, 4096))[1]
calls = {
    "lookup": lambda: os.stat("unknown"),
    "mkdir": lambda: os.mkdir("refused-mkdir"),
    "symlink": lambda: os.symlink("target", "refused-symlink"),
    "excl": lambda: make("refused-excl"),
    "link": lambda: os.link("own", "refused-link"),
    "rename": lambda: os.rename("old", "refused-rename"),
    "replace": lambda: os.rename("old", "own"),
    "unlink": lambda: os.unlink("old"),
    "rmdir": lambda: os.rmdir("directory"),
    "list": lambda: os.listdir("."),
    "fstat": lambda: os.fstat(fd),
    "read": lambda: os.pread(fd, 10, 0),
    "write": lambda: os.pwrite(fd, b"other", 0),
    "ftruncate": lambda: os.ftruncate(fd, 0),
    "fchmod": lambda: os.fchmod(fd, 0o644),
    "fsync": lambda: os.fsync(fd),
    "break": lambda: fcntl.ioctl(queue, 1 << 30 | 256 << 16 | 0xDF << 8 | 3, struct.pack("256s", claim)),  # fs/dlockfs.h
}
print("ready", flush=True)
while not os.path.exists(go):
    time.sleep(0.02)
for name, call in calls.items():
    try:
        call()
        said = "ok"
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(name, said, flush=True)
