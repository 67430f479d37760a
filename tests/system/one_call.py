#!/usr/bin/python3
"""Makes one system call: one_call.py CALL ARGUMENT...; prints "ok", or the name of its errno.

mkdir, rmdir, unlink PATH; link, symlink, rename OLD NEW; excl PATH (exclusive create and close);
append, overwrite PATH TEXT (one write, to what exists); truncate PATH SIZE; chmod PATH OCTAL; cut PATH (open with O_TRUNC); fsync PATH
"""

import errno
import os
import sys


def write(path, text, flags):
    fd = os.open(path, os.O_WRONLY | flags)
    os.write(fd, text.encode())


calls = {
    "mkdir": os.mkdir,
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "link": os.link,
    "symlink": os.symlink,
    "rename": os.rename,
    "excl": lambda path: os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)),
    "append": lambda path, text: write(path, text, os.O_APPEND),
    "overwrite": lambda path, text: write(path, text, 0),
    "truncate": lambda path, size: os.truncate(path, int(size)),
    "chmod": lambda path, mode: os.chmod(path, int(mode, 8)),
    "cut": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
    "fsync": lambda path: os.fsync(os.open(path, os.O_RDONLY)),
}

try:
    calls[sys.argv[1]](*sys.argv[2:])
    print("ok", flush=True)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
