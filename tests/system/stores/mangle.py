#!/usr/bin/python3
"""A link to a server of ZooKeeper that changes its answers: mangle.py PORT HOST:PORT FOLDER

See mangled_link.py. The names of changes are those of CHANGES below; with --list alone it prints them.
"""

import struct
import sys

from mangled_link import note, receive, run, shuffle, wanted

CREATE, DELETE, EXISTS, DATA, SET, ACL, CHILDREN, SYNC, PING = 1, 2, 3, 4, 5, 6, 8, 9, 11
CHILDREN2, MULTI, CONTAINER = 12, 14, 19
BEGIN, EVENT = "begin", "event"
HUGE = 2**31 - 1
HEADER = 16


def number(value):
    return struct.pack(">i", value)


def put(at, value):
    """A change that writes a number there."""

    def change(answer):
        return answer[:at] + number(value) + answer[at + 4 :]

    return change


def cut(at):
    return lambda answer: answer[:at]


def first_name(name):
    """A change that puts this in the place of the first name of a list; with its length in front."""

    def change(answer):
        (count,) = struct.unpack(">i", answer[HEADER : HEADER + 4])
        if count == 0:
            return None
        (length,) = struct.unpack(">i", answer[HEADER + 4 : HEADER + 8])
        return answer[: HEADER + 4] + name + answer[HEADER + 8 + length :]

    return change


def text(value):
    return number(len(value)) + value


def behind(more):
    """A change that has another answer follow."""
    return lambda answer: (answer, more)


def header(xid, error=0):
    return struct.pack(">iqi", xid, 1, error)


def failed(answer):
    """The results of a transaction that has failed, but for no reason."""
    results = answer[HEADER:]
    return answer[:HEADER] + struct.pack(">ibii", -1, 0, 0, 0) * (len(results) // 20 + 1) + struct.pack(">ibi", -1, 1, -1)


created = (CREATE, CONTAINER)
listed = (CHILDREN, CHILDREN2)
event = struct.pack(">ii", 2, 3)

# What is changed, and how. A change that returns None does not fit.
CHANGES = {
    "no-name": (listed, first_name(number(-1))),
    "long-name": (listed, first_name(number(HUGE))),
    "empty-name": (listed, first_name(text(b""))),
    "slash-name": (listed, first_name(text(b"../../zookeeper"))),
    "many-names": (listed, put(HEADER, HUGE)),
    "few-names": (listed, put(HEADER, -1)),
    "odd-names": (listed, put(HEADER, 1 << 24)),
    "no-list": (listed, cut(HEADER)),
    "no-path": (created, lambda answer: answer[:HEADER] + number(-1)),
    "no-slash": (created, lambda answer: answer[:HEADER] + text(b"0000000001")),
    "other-path": (created, lambda answer: answer[:HEADER] + text(b"/dlockfs/other/-0000000001")),
    "long-path": (created, put(HEADER, HUGE)),
    "no-created": (created, cut(HEADER)),
    "long-data": ((DATA,), put(HEADER, HUGE)),
    "negative-data": ((DATA,), put(HEADER, -2)),
    "no-data": ((DATA,), cut(HEADER)),
    "no-stat": ((DATA,), cut(-20)),
    "no-existence": ((EXISTS,), cut(HEADER + 10)),
    "no-event-path": ((EVENT,), lambda answer: answer[: HEADER + 8] + number(-1)),
    "long-event-path": ((EVENT,), put(HEADER + 8, HUGE)),
    "no-event": ((EVENT,), cut(HEADER)),
    "session-event": ((EVENT,), put(HEADER, -1)),
    "events": ((PING, MULTI), behind(header(-1) + event + text(b"/dlockfs/job"))),
    "cut-results": ((MULTI,), cut(HEADER + 9)),
    "no-results": ((MULTI,), cut(HEADER)),
    "few-results": ((MULTI,), lambda answer: answer[:HEADER] + struct.pack(">ibi", -1, 1, -1)),
    "many-results": ((MULTI,), lambda answer: answer[:HEADER] + struct.pack(">ibi", 13, 0, 0) * 1000),
    "failed-results": ((MULTI,), failed),
    "no-rights": ((ACL,), put(HEADER, HUGE)),
    "no-scheme": ((ACL,), put(HEADER + 8, -1)),
    "no-sync": ((SYNC,), cut(HEADER)),
    "unknown": ((PING, MULTI), behind(header(1))),
    "identity": ((PING, MULTI), behind(header(-4, -115))),
    "ping": ((PING, MULTI), behind(header(-2))),
    "watches": ((PING, MULTI), behind(header(-8))),
    "short": ((DELETE, CREATE), cut(7)),
    "empty": ((DELETE, CREATE), cut(0)),
    "huge": ((DELETE, CREATE), lambda answer: (answer, HUGE)),
    "negative": ((DELETE, CREATE), lambda answer: (answer, -1)),
    "timeout-0": ((BEGIN,), put(4, 0)),
    "timeout-negative": ((BEGIN,), put(4, -1)),
    "timeout-huge": ((BEGIN,), put(4, HUGE)),
    "no-session": ((BEGIN,), lambda answer: answer[:8] + bytes(8) + answer[16:]),
    "long-password": ((BEGIN,), put(16, HUGE)),
    "no-password": ((BEGIN,), lambda answer: answer[:16] + number(0)),
    "no-beginning": ((BEGIN,), cut(10)),
}


def change(kind, answer):
    """What to send instead: packets, or numbers in the place of one's length."""
    what = wanted()
    changed = None
    if what in CHANGES and kind in CHANGES[what][0] and (kind in (BEGIN, EVENT) or answer[12:HEADER] == bytes(4)):
        changed = CHANGES[what][1](answer)
    if changed is None:
        return (shuffle(answer) if answer else answer,)
    note(what)
    return changed if isinstance(changed, tuple) else (changed,)


def receive_packet(source):
    (length,) = struct.unpack(">i", receive(source, 4))
    return receive(source, length)


def send(sink, *packets):
    for packet in packets:
        sink.sendall(number(packet) if isinstance(packet, int) else number(len(packet)) + packet)


def forward_requests(client, server, kinds):
    send(server, receive_packet(client))
    while True:
        request = receive_packet(client)
        xid, kind = struct.unpack(">ii", request[:8])
        kinds[xid] = kind
        send(server, request)


def forward_answers(client, server, kinds):
    kinds[-1] = EVENT
    send(client, *change(BEGIN, receive_packet(server)))
    while True:
        answer = receive_packet(server)
        (xid,) = struct.unpack(">i", answer[:4])
        kind = kinds.get(xid, 0) if xid < 0 else kinds.pop(xid, 0)
        send(client, *change(kind, answer))


if sys.argv[1:] == ["--list"]:
    print("\n".join(CHANGES))
else:
    run(sys.argv[1:], forward_requests, forward_answers)
