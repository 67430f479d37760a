# SPDX-License-Identifier: Apache-2.0
"""Whether a register is linearizable: whether there is one order of its operations in which each does what it was seen to do, and
which has no operation before another one that had ended when it began.

The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993), with the memory of Lowe ("Testing for
linearizability", 2017), as porcupine and knossos have it. It tries each operation next that none of the open ones had to
precede; where the register would not have answered so, or the same operations have led to the same state before, it tries
another, and goes back where there is none. So it ends with an order, or has tried all that can differ.

An operation without an answer may have had its effect at any time after its call, or never: it may be left out."""

INFINITY = float("inf")


class Operation:
    """A swap, from `begin` to `end` (INFINITY: no answer came): sets `value` if `token` is not less than one that was seen (None: it
    has none, and is not refused), and answers what `was` before, or that it is `refused`."""

    def __init__(self, begin, end, value, was=None, token=None, refused=False):
        self.begin, self.end = begin, end
        self.value, self.was = value, was
        self.token, self.refused = token, refused

    def apply(self, state):
        """The state after it, or None if it is not what the register does in that state: the value, and the greatest token seen."""
        value, seen = state
        refused = self.token is not None and seen is not None and self.token < seen
        if self.end == INFINITY:
            return None if refused else (self.value, seen if self.token is None else self.token)
        if self.refused != refused:
            return None
        if refused:
            return state
        return (self.value, seen if self.token is None else self.token) if self.was == value else None


class _Entry:
    """A call, or a return, in a list in order of time."""

    def __init__(self, number, operation, call=None):
        self.number = number
        self.operation = operation
        self.call = call  # of a return
        self.back = None  # of a call: its return
        self.before = self.after = None

    def unlink(self):
        self.before.after = self.after
        if self.after:
            self.after.before = self.before

    def link(self):
        self.before.after = self
        if self.after:
            self.after.before = self


def _list(operations):
    """Its head, which is no entry."""
    times = []
    for number, operation in enumerate(operations):
        call = _Entry(number, operation)
        call.back = _Entry(number, operation, call)
        times += [(operation.begin, 0, number, call), (operation.end, 1, number, call.back)]
    head = last = _Entry(-1, None)
    for *_, entry in sorted(times, key=lambda item: item[:3]):
        last.after, entry.before = entry, last
        last = entry
    return head


def search(operations):
    """Returns None if they have an order, or an operation that has no place behind the longest order of others."""
    head = _list(operations)
    state, done, tried, path = (None, None), 0, set(), []
    furthest, culprit = -1, None
    entry = head.after
    while entry:
        if not entry.call:
            then = entry.operation.apply(state)
            with_it = done | 1 << entry.number
            if then is None or (with_it, then) in tried:
                entry = entry.after
                continue
            tried.add((with_it, then))
            path.append((entry, state))
            state, done = then, with_it
            entry.unlink()
            entry.back.unlink()
            entry = head.after
            continue
        if entry.operation.end == INFINITY:
            return None  # all that have answers have their places
        if len(path) > furthest:
            furthest, culprit = len(path), entry.operation
        if not path:
            return culprit
        entry, state = path.pop()
        done &= ~(1 << entry.number)
        entry.back.link()
        entry.link()
        entry = entry.after
    return None
