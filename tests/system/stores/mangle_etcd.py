#!/usr/bin/python3
"""A link to a server of etcd that changes its answers: mangle_etcd.py PORT HOST:PORT FOLDER

See mangled_link.py. The names of changes are those of CHANGES and FLOODS below; a flood is sent behind the answer. With --list or
--floods alone it prints them.

Only the frames of HTTP/2 and the prefix of gRPC are read. Headers pass as they are, as their compression has a state.
"""

import struct
import sys

from mangled_link import note, receive, run, shuffle, wanted

# Frames of HTTP/2 (RFC 9113, section 6), and their flags.
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8

# Whose answers: by the first message that was sent for it.
GRANT, KEEPER, TRANSACTION, WATCH, OTHER = "grant", "keeper", "transaction", "watch", "other"
TRAILERS = "trailers"
ANY = (GRANT, KEEPER, TRANSACTION, WATCH, OTHER)

MAX = 2**63 - 1
MIN = -(2**63)
LONG = 1000 * 1000


def frame(kind, flags, stream, payload=b"", length=None):
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def data(stream, payload):
    return b"".join(frame(DATA, 0, stream, payload[at : at + 16384]) for at in range(0, len(payload), 16384))


def prefixed(message, length=None, compressed=0):
    return struct.pack(">BI", compressed, len(message) if length is None else length) + message


# Protocol buffers: a message is a list of (number of the field, value), where a value is bytes or a number.


def varint(value):
    out = b""
    value &= 2**64 - 1
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def take_varint(text, at):
    value = shift = 0
    while True:
        value |= (text[at] & 127) << shift
        shift += 7
        at += 1
        if text[at - 1] < 128:
            return value, at


def parse(text):
    fields, at = [], 0
    while at < len(text):
        key, at = take_varint(text, at)
        value, at = take_varint(text, at)
        if key & 7 == 2:
            value, at = text[at : at + value], at + value
        fields.append((key >> 3, value))
    return fields


def build(fields):
    def one(number, value):
        if isinstance(value, bytes):
            return varint(number << 3 | 2) + varint(len(value)) + value
        return varint(number << 3) + varint(value)

    return b"".join(one(number, value) for number, value in fields)


def edit(path, change):
    """A change of the message: of each field that the path leads to, what change() makes of its value is there instead: a list of
    values. A field that is not there is as one without a value. Returns None if the path leads nowhere."""

    def apply(text, path):
        number = path[0]
        fields, found = [], False
        for other, value in parse(text):
            if other != number:
                fields.append((other, value))
                continue
            values = [value]
            if len(path) == 1:
                values, found = change(value), True
            else:
                below = apply(value, path[1:])
                if below is not None:
                    values, found = [below], True
            fields += [(number, value) for value in values]
        if not found and len(path) == 1:
            fields += [(number, value) for value in change(None)]
            found = True
        return build(fields) if found else None

    return lambda message: apply(message, path)


def put(path, value):
    return edit(path, lambda former: [value])


def drop(path):
    return edit(path, lambda former: [])


def repeat(path, times):
    return edit(path, lambda former: [former] * times if former is not None else [])


def answer(change):
    """What to send for a changed message."""

    def make(stream, message):
        changed = change(message)
        return None if changed is None or changed == message else data(stream, prefixed(changed))

    return make


def before(make):
    """What to send in front of the answer, by its stream and message."""
    return lambda stream, message: make(stream, message) + data(stream, prefixed(message))


def literal(name, value):
    """A header that is not compressed (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def status(number, text):
    """Trailers that say so: the last ones count."""
    more = literal(b"grpc-status", str(number).encode()) + literal(b"grpc-message", text.encode())
    return lambda stream, block: frame(HEADERS, END_STREAM | END_HEADERS, stream, block + more)


REVISION = (1, 3)
KEYS = (3, 1, 2)  # of a transaction: responses, range, kvs
EVENTS = (11,)

CHANGES = {
    # The messages of transactions
    "no-header": ((TRANSACTION,), answer(drop((1,)))),
    "old-revision": ((TRANSACTION,), answer(put(REVISION, 1))),
    "negative-revision": ((TRANSACTION,), answer(put(REVISION, -1))),
    "other-cluster": ((TRANSACTION,), answer(put((1, 1), 7))),
    "other-member": ((TRANSACTION, KEEPER), answer(put((1, 2), 7))),
    "huge-term": ((TRANSACTION,), answer(put((1, 4), MAX))),
    "refused": ((TRANSACTION,), answer(drop((2,)))),
    "no-responses": ((TRANSACTION,), answer(drop((3,)))),
    "many-responses": ((TRANSACTION,), answer(repeat((3,), 20000))),
    "empty-responses": ((TRANSACTION,), answer(put((3,), b""))),
    "no-keys": ((TRANSACTION,), answer(drop(KEYS))),
    "many-keys": ((TRANSACTION,), answer(repeat(KEYS, 10000))),
    "empty-keys": ((TRANSACTION,), answer(put(KEYS, b""))),
    "no-key": ((TRANSACTION,), answer(drop(KEYS + (1,)))),
    "short-key": ((TRANSACTION,), answer(put(KEYS + (1,), b"/"))),
    "slash-key": ((TRANSACTION,), answer(put(KEYS + (1,), b"/dlockfs/job/../../x//y/"))),
    "nul-key": ((TRANSACTION,), answer(put(KEYS + (1,), b"/dlockfs/job/a\0b/data"))),
    "long-key": ((TRANSACTION,), answer(put(KEYS + (1,), b"/dlockfs/job/" + b"x" * LONG))),
    "dot-key": ((TRANSACTION,), answer(put(KEYS + (1,), b"."))),
    "no-value": ((TRANSACTION,), answer(drop(KEYS + (5,)))),
    "long-value": ((TRANSACTION,), answer(put(KEYS + (5,), b"\xff" * LONG))),
    "created-0": ((TRANSACTION,), answer(put(KEYS + (2,), 0))),
    "created-last": ((TRANSACTION,), answer(put(KEYS + (2,), MAX))),
    "created-negative": ((TRANSACTION,), answer(put(KEYS + (2,), MIN))),
    "changed-negative": ((TRANSACTION,), answer(put(KEYS + (3,), MIN))),
    "version-negative": ((TRANSACTION,), answer(put(KEYS + (4,), MIN))),
    "no-lease": ((TRANSACTION,), answer(drop(KEYS + (6,)))),
    "negative-lease": ((TRANSACTION,), answer(put(KEYS + (6,), -1))),
    "more": ((TRANSACTION,), answer(put((3, 1, 3), 1))),
    "cut-message": ((TRANSACTION, WATCH), answer(lambda message: message[:-3])),
    "empty-message": (ANY, answer(lambda message: b"")),
    "no-message": (ANY, answer(lambda message: b"\xff" * 40)),
    "deep-message": (ANY, answer(lambda message: b"\x0a\x02\x0a\x00" * 20000)),
    # Of leases
    "lease-0": ((GRANT,), answer(drop((2,)))),
    "lease-negative": ((GRANT,), answer(put((2,), -1))),
    "ttl-0": ((GRANT,), answer(drop((3,)))),
    "ttl-huge": ((GRANT,), answer(put((3,), MAX))),
    "kept-0": ((KEEPER,), answer(drop((3,)))),
    "kept-negative": ((KEEPER,), answer(put((3,), -1))),
    "kept-huge": ((KEEPER,), answer(put((3,), MAX))),
    "kept-other": ((KEEPER,), answer(put((2,), 1))),
    "kept-twice": ((KEEPER,), lambda stream, message: data(stream, prefixed(message)) * 2),
    # Of watches
    "no-watch": ((WATCH,), answer(put((2,), MAX))),
    "watch-negative": ((WATCH,), answer(put((2,), -1))),
    "canceled": ((WATCH,), answer(put((4,), 1))),
    "compacted": ((WATCH,), answer(put((5,), MAX))),
    "empty-events": ((WATCH,), answer(put(EVENTS, b""))),
    "many-events": ((WATCH,), answer(repeat(EVENTS, 10000))),
    "event-kind": ((WATCH,), answer(put(EVENTS + (1,), 99))),
    "event-key": ((WATCH,), answer(put(EVENTS + (2, 1), b"/"))),
    "event-late": ((WATCH,), answer(put(EVENTS + (2, 3), MAX))),
    "event-version": ((WATCH,), answer(put(EVENTS + (2, 4), MIN))),
    # The prefix of gRPC
    "compressed": (ANY, lambda stream, message: data(stream, prefixed(message, compressed=1))),
    "prefix-short": (ANY, lambda stream, message: data(stream, prefixed(message, len(message) - 1))),
    "prefix-long": (ANY, lambda stream, message: data(stream, prefixed(message, len(message) + 1))),
    "prefix-huge": (ANY, lambda stream, message: data(stream, prefixed(message, 2**32 - 1))),
    "prefix-cut": (ANY, lambda stream, message: data(stream, b"\0\0")),
    "two-answers": (ANY, lambda stream, message: data(stream, prefixed(message) * 2)),
    # What the server says of a call
    "lease-taken": ((TRAILERS,), status(9, "etcdserver: lease already exists")),
    "lease-gone": ((TRAILERS,), status(5, "etcdserver: requested lease not found")),
    "full": ((TRAILERS,), status(8, "etcdserver: mvcc: database space exceeded")),
    "busy": ((TRAILERS,), status(8, "etcdserver: too many requests")),
    "stranger": ((TRAILERS,), status(16, "etcdserver: invalid auth token")),
    "unknown-status": ((TRAILERS,), status(2**31, "\x1b[2J\u202e")),
    "no-trailers": ((TRAILERS,), lambda stream, block: b""),
    # Frames; those that nobody may send are in tests/unit/stores/test_grpc_hostile.c
    "reset": (ANY, lambda stream, message: frame(RESET, 0, stream, struct.pack(">I", 7))),
    "reset-all": (ANY, before(lambda stream, message: b"".join(frame(RESET, 0, at, bytes(4)) for at in range(1, stream, 2)))),
    "unknown-frame": (ANY, before(lambda stream, message: frame(0xEE, 0xFF, stream, b"x" * 1000))),
    "settings-no-window": (ANY, before(lambda stream, message: frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))),
    "settings-no-calls": (ANY, before(lambda stream, message: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 0)))),
    "settings-table": (ANY, before(lambda stream, message: frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 2**32 - 1)))),
    "settings-many": (ANY, before(lambda stream, message: frame(SETTINGS, 0, 0, struct.pack(">HI", 99, 1) * 2000))),
    "ack": (ANY, before(lambda stream, message: frame(SETTINGS, ACK, 0))),
    "pong": (ANY, before(lambda stream, message: frame(PING, ACK, 0, bytes(8)))),
    "goaway": (ANY, before(lambda stream, message: frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0) + b"\xff\x1b" * 5000))),
    "priority-itself": (ANY, before(lambda stream, message: frame(PRIORITY, 0, stream, struct.pack(">IB", stream, 1)))),
    "bad-headers": (ANY, before(lambda stream, message: frame(HEADERS, END_HEADERS, stream, b"\xff" * 20))),
    "early-end": (ANY, lambda stream, message: frame(DATA, END_STREAM, stream, prefixed(message))),
    "after-end": (ANY, lambda stream, message: frame(DATA, END_STREAM, stream) + data(stream, prefixed(message))),
    "no-answer": (ANY, lambda stream, message: b""),
}

# Those of new leases: meanwhile what keeps a lease says that it is over.
NEW_LEASES = ("lease-0", "lease-negative", "ttl-0", "ttl-huge", "lease-taken")

# What is sent for as long as the client takes it, behind an answer.
FLOODS = {
    "pings": lambda stream: frame(PING, 0, 0, bytes(8)) * 500,
    "settings": lambda stream: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 500,
    "pongs": lambda stream: frame(PING, ACK, 0, bytes(8)) * 500,
    "nothing": lambda stream: frame(DATA, 0, stream) * 500,
    "windows": lambda stream: frame(WINDOW, 0, 0, struct.pack(">I", 1)) * 500,
    "priorities": lambda stream: frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 1)) * 500,
    "unknown-frames": lambda stream: frame(0xEE, 0, 0, b"x" * 16384) * 4,
    "resets": lambda stream: frame(RESET, 0, stream, bytes(4)) * 500,
    "continuations": lambda stream: frame(CONTINUATION, 0, stream, b""),
    "long-continuations": lambda stream: frame(CONTINUATION, 0, stream, literal(b"x", b"y" * 100) * 100),
    "hints": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\x08\x03103") * 500,
    "messages": lambda stream: frame(DATA, 0, stream, prefixed(b"")) * 500,
    "prefix": lambda stream: frame(DATA, 0, stream, b"\0\3\xff\xff\xff" + b"x" * 16000),
    "farewell": lambda stream: frame(0xEE, 0, 0, b"x" * 16384) * 4,
}
FLOOD_BEGINS = {
    "continuations": lambda stream: frame(HEADERS, 0, stream, b"\x88"),
    "long-continuations": lambda stream: frame(HEADERS, 0, stream, b"\x88"),
    "farewell": lambda stream: frame(GOAWAY, 0, 0, struct.pack(">II", 2**31 - 1, 0)),
}


def change(kind, stream, payload):
    """What to send instead of the message or the trailers; None: as it is."""
    what = wanted()
    if what in NEW_LEASES and kind == KEEPER:
        return CHANGES["kept-0"][1](stream, payload)
    if what not in CHANGES or kind not in CHANGES[what][0]:
        return None
    try:
        changed = CHANGES[what][1](stream, payload)
    except IndexError:  # no message that can be parsed
        return None
    if changed is not None:
        note(what)
    return changed


def flood(client, stream):
    what = wanted()
    if what not in FLOODS:
        return
    note(what)
    if what in FLOOD_BEGINS:
        client.sendall(FLOOD_BEGINS[what](stream))
    while wanted() == what:
        client.sendall(FLOODS[what](stream))
    raise OSError("the end of a flood")


def receive_frame(source):
    """The frame as it is, its kind, flags, stream and payload."""
    head = receive(source, 9)
    length = int.from_bytes(head[:3], "big")
    payload = receive(source, length) if length else b""
    return head + payload, head[3], head[4], int.from_bytes(head[5:], "big"), payload


def first_message(text):
    """The first message of gRPC in there, None if it is not whole; and what follows."""
    length = 5 + int.from_bytes(text[1:5], "big") if len(text) >= 5 else 5
    return (text[5:length], text[length:]) if len(text) >= length else (None, text)


def kind_of(request, is_stream):
    """By the first message, and whether the client has more to send."""
    fields = dict(parse(request))
    if is_stream:
        return WATCH if isinstance(fields.get(1), bytes) else KEEPER
    if isinstance(fields.get(1), int) and isinstance(fields.get(2), int):
        return GRANT
    return TRANSACTION if isinstance(fields.get(2), bytes) or isinstance(fields.get(3), bytes) else OTHER


def forward_requests(client, server, kinds):
    requests = {}
    server.sendall(receive(client, 24))
    while True:
        text, kind, flags, stream, payload = receive_frame(client)
        if kind == DATA and stream not in kinds:
            requests[stream] = requests.get(stream, b"") + payload
            message, _ = first_message(requests[stream])
            if message is not None:
                kinds[stream] = kind_of(message, not flags & END_STREAM)
                del requests[stream]
        server.sendall(text)


def forward_answers(client, server, kinds):
    held = {}
    while True:
        text, kind, flags, stream, payload = receive_frame(server)
        if kind == DATA and payload:
            held[stream] = held.get(stream, b"") + payload
            message, held[stream] = first_message(held[stream])
            while message is not None:
                changed = change(kinds.get(stream, OTHER), stream, message)
                client.sendall(shuffle(data(stream, prefixed(message))) if changed is None else changed)
                flood(client, stream)
                message, held[stream] = first_message(held[stream])
            text = frame(DATA, flags, stream) if flags & END_STREAM else b""
        elif kind == HEADERS and flags & END_STREAM:
            changed = change(TRAILERS, stream, payload)
            text = shuffle(text) if changed is None else changed
        else:
            text = shuffle(text)
        client.sendall(text)


if sys.argv[1:] == ["--list"]:
    print("\n".join(CHANGES))
elif sys.argv[1:] == ["--floods"]:
    print("\n".join(FLOODS))
else:
    run(sys.argv[1:], forward_requests, forward_answers)
