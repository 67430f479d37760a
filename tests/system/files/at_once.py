#!/usr/bin/python3
"""Makes system calls at once, each in a process of its own: at_once.py CALL ARGUMENT... [-- CALL ARGUMENT...]...; prints a line for
each, in their order: "ok", or the name of its errno.

link OLD NEW; unlink PATH
"""

import os
import sys

from call_result import result

calls = {"link": os.link, "unlink": os.unlink}


def made(call, *arguments):
    return result(calls[call], *arguments)


ready, go = os.pipe()
answers = []
for text in " ".join(sys.argv[1:]).split(" -- "):
    answer, end = os.pipe()
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)
        os.write(end, made(*text.split()).encode())
        os._exit(0)
    os.close(end)
    answers.append(answer)
os.close(go)
for answer in answers:
    print(os.read(answer, 100).decode())
