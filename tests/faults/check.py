#!/usr/bin/python3
"""Says what a history shows of locks: check.py [--json] [--strict] FILE

The history alone counts, whoever wrote it. It has a JSON object a line, in any order:

    time      nanoseconds of CLOCK_MONOTONIC, one clock for all
    process   who; a process that was killed, and is followed by another, has a new name
    type      invoke, ok, fail: a call is made, has succeeded, or not, as in Jepsen's histories; info: what no call is
    f         the call: acquire, release, write. As info: told (the process knows that its lock is lost), killed;
              and of the process `nemesis`: begin and end (of a fault), calm (no more faults come), over (nobody does
              anything any more)
    lock      which
    token     of acquire ok and of write: the fencing token, or null where the contender has none
    was, value, at
              of write: the register is set to `value` and gives what it `was` before (null: nothing). It says itself that
              this was `at` that time. fail: it has seen a larger token

A process holds a lock from acquire ok until it asks for release, is told, or is killed; a write in that time is what it does
to others because it believes that it holds. So two hold at once if one writes after another process was granted the lock:

    double      holds in which that happened, and the longest time between that grant and the last such write
    late        holders that were told after another one was granted, by how long at most, or never
    lost        holders that were told although no fault was near (--grace SECONDS behind each fault)
    back        grants with a token that is not greater than that of one which was over before, or known when they were asked for
    stuck       calls that had no answer at the end, --patience SECONDS after the last fault and after they were made
    fault_s     how long a fault was on, in all
    under_s     from the begin of the first fault until no more came
    away        the longest time from the end of a fault to the next grant
    overtaken   grants to somebody who asked at least --margin SECONDS later than one who waited then
    register    registers that are not linearizable (linearizable.py), of which each lock has one

Ends with 1 if the history is broken, or if --strict is given and there is anything of double, late, lost, back or stuck, or
a register that is not linearizable.
"""

import argparse
import collections
import json
import sys

import linearizable
from linearizable import Operation

INFINITY = float("inf")


class Broken(Exception):
    """This is no history."""


class Hold:
    """A lock, from its grant to the end of the belief in it. `end` is when that was, `how`: released, told, killed or open."""

    def __init__(self, process, asked, granted, token):
        self.process = process
        self.asked = asked
        self.granted = granted
        self.token = token
        self.writes = []
        self.end = INFINITY
        self.how = "open"

    def finish(self, time, how):
        self.end, self.how = time, how


class Write:
    def __init__(self, process, event):
        self.process = process
        self.begin = event["time"]
        self.end = INFINITY
        self.token = event.get("token")
        self.value = event["value"]
        self.lock = event["lock"]
        self.was = self.at = None
        self.refused = False

    def answered(self, event):
        self.end = event["time"]
        self.refused = event["type"] == "fail"
        self.was = event.get("was")
        self.at = event.get("at")

    @property
    def time(self):
        """Of the effect, as far as it is known."""
        return self.begin if self.at is None else self.at


class History:
    """What the events say, in order of time."""

    def __init__(self, events):
        self.holds = collections.defaultdict(list)  # by lock
        self.waits = collections.defaultdict(list)  # by lock: process, asked, granted or infinity, whether it failed
        self.writes = []
        self.faults = []  # begin, end, name
        self.calm = self.over = None
        self.pending = {}  # by process: its call that has no answer yet
        self.current = {}  # by process: what it holds
        for event in sorted(events, key=lambda event: event["time"]):
            self.add(event)
        if self.over is None:
            raise Broken("the history has no end")

    def add(self, event):
        process, kind, call = event["process"], event["type"], event["f"]
        if process == "nemesis":
            self.add_fault(event)
        elif kind == "info":
            self.end_hold(process, event["time"], call)
            if call == "killed":
                self.pending.pop(process, None)
        elif kind == "invoke":
            self.invoke(process, call, event)
        else:
            self.answer(process, call, kind, event)

    def add_fault(self, event):
        if event["f"] == "begin":
            self.faults.append([event["time"], INFINITY, event.get("value", "")])
        elif event["f"] == "end":
            if not self.faults or self.faults[-1][1] != INFINITY:
                raise Broken("a fault ends that has not begun")
            self.faults[-1][1] = event["time"]
        else:
            setattr(self, event["f"], event["time"])

    def end_hold(self, process, time, how):
        hold = self.current.pop(process, None)
        if hold:
            hold.finish(time, how)

    def invoke(self, process, call, event):
        if process in self.pending:
            raise Broken(f"{process} makes two calls at a time")
        if call == "acquire":
            if process in self.current:
                raise Broken(f"{process} asks for a second lock")
            item = [process, event["time"], INFINITY, False]
            self.waits[event["lock"]].append(item)
        elif call == "write":
            if process not in self.current:
                raise Broken(f"{process} writes without a lock")
            item = Write(process, event)
            self.writes.append(item)
            self.current[process].writes.append(item)
        else:
            item = None
            self.end_hold(process, event["time"], "released")
        self.pending[process] = call, event, item

    def answer(self, process, call, kind, event):
        asked, invoked, item = self.pending.pop(process, (None, None, None))
        if asked != call:
            raise Broken(f"{process} has an answer to {call}, which it has not made")
        if call == "write":
            item.answered(event)
        elif call == "acquire":
            item[2], item[3] = event["time"], kind == "fail"
            if kind == "ok":
                hold = Hold(process, invoked["time"], event["time"], event.get("token"))
                self.holds[invoked["lock"]].append(hold)
                self.current[process] = hold


class Checker:
    def __init__(self, history, grace_s, patience_s, margin_s):
        self.history = history
        self.grace, self.patience, self.margin = (int(seconds * 1e9) for seconds in (grace_s, patience_s, margin_s))
        self.found = []

    def say(self, what, text):
        self.found.append(f"{what}: {text}")

    def near_fault(self, time):
        return any(begin <= time <= end + self.grace for begin, end, _ in self.history.faults)

    def exclusion(self):
        """Two holders at once, and who was told when."""
        double = late = never = refused = 0
        longest = latest = 0
        for lock, holds in self.history.holds.items():
            for number, hold in enumerate(holds):
                after = next((other for other in holds[number + 1 :] if other.process != hold.process), None)
                if after is None or after.granted > hold.end:
                    continue
                # Somebody else was granted the lock while this one believed in it.
                if hold.how == "told":
                    late += 1
                    delay = hold.end - after.granted
                    latest = max(latest, delay)
                    self.say("late", f"{lock}: {hold.process} was told {delay / 1e6:.0f} ms after a grant to {after.process}")
                elif hold.how != "killed":
                    never += 1
                    granted = f"{hold.process} at {hold.granted / 1e9:.3f}, {after.process} at {after.granted / 1e9:.3f}"
                    self.say("never told", f"{lock}: granted to {granted}")
                writes = [write for write in hold.writes if write.time > after.granted]
                if writes:
                    double += 1
                    refused += all(write.refused for write in writes)
                    overlap = max(write.time for write in writes) - after.granted
                    longest = max(longest, overlap)
                    grant = f"a grant to {after.process} at {after.granted / 1e9:.3f}"
                    self.say("double", f"{lock}: {hold.process} wrote {overlap / 1e6:.0f} ms after {grant}")
        return {
            "double": double,
            "longest_s": longest / 1e9,
            "double_refused": refused,
            "late": late,
            "latest_s": latest / 1e9,
            "never": never,
        }

    def losses(self):
        """Who was told: how long after the fault began that met the hold, or without any."""
        lost, told, delays = 0, 0, []
        for lock, holds in self.history.holds.items():
            for hold in holds:
                if hold.how != "told":
                    continue
                told += 1
                begins = [begin for begin, end, _ in self.history.faults if begin <= hold.end <= end + self.grace]
                if begins:
                    delays += [hold.end - begins[-1]] if hold.granted < begins[-1] else []
                else:
                    lost += 1
                    self.say("lost", f"{lock}: {hold.process} at {hold.end / 1e9:.3f}, without a fault")
        return {"told": told, "told_after_s": max(delays, default=0) / 1e9, "lost": lost}

    def tokens(self):
        """They grow from a grant to each that was asked for, or given, when the former one was known, or over."""
        back = 0
        for lock, holds in self.history.holds.items():
            known = [hold for hold in holds if hold.token is not None]
            for number, hold in enumerate(known):
                for former in known[:number]:
                    if former.token >= hold.token and (former.granted < hold.asked or former.end <= hold.granted):
                        back += 1
                        self.say("back", f"{lock}: {hold.process} has {hold.token}, after {former.process} had {former.token}")
                        break
        return {"back": back}

    def liveness(self):
        """After the last fault, and after each."""
        stuck = 0
        calm = self.history.calm if self.history.calm is not None else self.history.over
        for process, (call, event, _) in sorted(self.history.pending.items()):
            if self.history.over - max(event["time"], calm) >= self.patience:
                stuck += 1
                self.say("stuck", f"{process} in {call} since {event['time'] / 1e9:.3f}")
        grants = sorted(hold.granted for holds in self.history.holds.values() for hold in holds)
        away = 0
        for _, end, name in self.history.faults:
            if end == INFINITY:
                continue
            after = next((time for time in grants if time >= end), self.history.over)
            away = max(away, after - end)
        return {"stuck": stuck, "away_s": away / 1e9}

    def duration(self):
        """How long a fault was on, and how long it took from the first one until the service and the locks had got over the last."""
        calm = self.history.calm if self.history.calm is not None else self.history.over
        on = sum(min(end, calm) - begin for begin, end, _ in self.history.faults)
        first = min((begin for begin, *_ in self.history.faults), default=calm)
        return {"fault_s": on / 1e9, "under_s": (calm - first) / 1e9}

    def order(self):
        overtaken = 0
        for waits in self.history.waits.values():
            granted = sorted((wait for wait in waits if wait[2] != INFINITY and not wait[3]), key=lambda wait: wait[2])
            for process, asked, time, _ in granted:
                overtaken += any(
                    other != process and other_asked + self.margin < asked and time < other_time and not failed
                    for other, other_asked, other_time, failed in waits
                )
        return {"overtaken": overtaken}

    def register(self):
        by_lock = collections.defaultdict(list)
        for write in self.history.writes:
            by_lock[write.lock].append(write)
        problems = 0
        for lock, writes in by_lock.items():
            operations = [Operation(each.begin, each.end, each.value, each.was, each.token, each.refused) for each in writes]
            culprit = linearizable.search(operations)
            if culprit:
                problems += 1
                seen = "was refused" if culprit.refused else f"found {culprit.was}"
                self.say("register", f"{lock}: no order explains that {culprit.value}, at {culprit.begin / 1e9:.3f}, {seen}")
        return {"register": problems}

    def check(self):
        counts = {
            "acquired": sum(len(holds) for holds in self.history.holds.values()),
            "failed": sum(failed for waits in self.history.waits.values() for *_, failed in waits),
            "writes": len(self.history.writes),
            "refused": sum(write.refused for write in self.history.writes),
            "faults": len(self.history.faults),
            **self.duration(),
        }
        for part in (self.exclusion, self.losses, self.tokens, self.liveness, self.order, self.register):
            counts.update(part())
        return counts


BAD = ("double", "late", "never", "lost", "back", "stuck", "register")


def read(file):
    events = []
    for number, line in enumerate(file, 1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise Broken(f"line {number} is no JSON: {error}") from error
    return events


def check(events, grace_s=6.0, patience_s=15.0, margin_s=0.1):
    """Returns the counts, and what was found in words."""
    checker = Checker(History(events), grace_s, patience_s, margin_s)
    counts = checker.check()
    return counts, checker.found


def main():
    parser = argparse.ArgumentParser(description="Says what a history shows of locks.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--strict", action="store_true", help="end with 1 if anything is wrong")
    parser.add_argument("--grace", type=float, default=6.0)
    parser.add_argument("--patience", type=float, default=15.0)
    parser.add_argument("--margin", type=float, default=0.1)
    parser.add_argument("file")
    options = parser.parse_args()
    try:
        with open(options.file, encoding="utf-8") as file:
            counts, found = check(read(file), options.grace, options.patience, options.margin)
    except (Broken, KeyError) as error:
        sys.exit(f"broken: {error}")
    if options.json:
        print(json.dumps({**counts, "found": found}))
    else:
        print(*found, sep="\n", end="\n" if found else "")
        print(*(f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}" for name, value in counts.items()))
    sys.exit(1 if options.strict and any(counts[name] for name in BAD) else 0)


if __name__ == "__main__":
    main()
