"""What calls that lock must give: by the rules of Linux, by those of dlockfs, or where both agree. No call is made
here.

An owner is a process ("p", number), an open file's OFD locks ("o", number) or an open file's flock or exclusive open
("f", number). A request of an owner waits for what blocks it, and a call has an outcome: its result, and whose
waiting calls are granted with it. Outcome is None where the rules leave it open.

Where dlockfs differs from Linux, the rules ask self.queues:
- flock, exclusive open and record locks on one name exclude one another, but not those through one open file;
- an exclusive open waits for its turn, where Linux has EEXIST for any file that is there;
- a request waits also for those that wait before it, but for the ones that wait for what its owner holds
  (precedence());
- a cycle is a deadlock with OFD locks in it too, and whichever of several locks in the way closes it; but not over
  several files and several hosts;
- a cycle that takes somebody who only waits is broken for the oldest request in it that has only such in its way, all of them
  in the cycle: the oldest of these is queued again, at the end and without an anchor, and so on until there is no cycle, or
  no such request (look());
- F_GETLK may tell of who only waits, on another host.

Left open is what depends on time: which of several hosts queues first again what each has to, and which of several
files a request is in that has to let others pass. And where Linux has an order of its own: who of several is granted
when they ask for the same, and which of several locks in the way counts for a deadlock.
"""

LAST = 2**63 - 1
RECORDS = "po"


class Ranges:
    """What one owner holds in one file: sorted (start, end, type), no overlap, neighbours merged."""

    def __init__(self, ranges=()):
        self.ranges = list(ranges)

    def set(self, start, end, kind):
        new = []
        for s, e, k in self.ranges:
            if s < start:
                new.append((s, min(e, start - 1), k))
            if e > end:
                new.append((max(s, end + 1), e, k))
        if kind != "u":
            new.append((start, end, kind))
        self.ranges = []
        for s, e, k in sorted(new):
            if self.ranges and self.ranges[-1][2] == k and self.ranges[-1][1] + 1 == s:
                self.ranges[-1] = (self.ranges[-1][0], e, k)
            else:
                self.ranges.append((s, e, k))

    def overlaps(self, start, end):
        return [r for r in self.ranges if r[0] <= end and start <= r[1]]

    def covers(self, request):
        found = [r for r in self.overlaps(request.start, request.end) if request.kind in ("r", r[2])]
        left = request.start
        for s, e, _ in found:
            if s > left:
                return False
            left = e + 1
        return left > request.end

    def conflicts(self, start, end, kind):
        return [r for r in self.overlaps(start, end) if "w" in (kind, r[2])]


class Request:
    """A call that asks for a lock, through an open file."""

    def __init__(self, slot, owner, through, file, span, kind):
        self.slot, self.owner, self.through, self.file = slot, owner, through, file
        self.start, self.end = span
        self.kind = kind
        self.sequence = self.anchor = self.holds = None

    def copy(self):
        return Request(self.slot, self.owner, self.through, self.file, (self.start, self.end), self.kind)

    def overlaps(self, other):
        return self.file == other.file and self.start <= other.end and other.start <= self.end


class Rules:
    """The state of all locks by one of the two sets of rules.

    `hosts` tells the host of an owner. It is shared with whoever adds owners to it, as they never change theirs.
    Unless `parts`, it is left open what becomes of record locks under a flock that goes first: dlockfs keeps all of
    its claim, for the others (is_open_under()).
    """

    def __init__(self, queues, hosts, parts):
        self.queues, self.hosts, self.parts = queues, hosts, parts
        self.held = {}  # by file: by owner: Ranges
        # By file and owner: the number of the request since which it has held something, but what a flock covers.
        self.since = {}
        self.through = {}  # by file and owner of record locks: the open files that it has locked through
        self.names = set()  # files that are there, for Linux
        self.waiting = []
        self.sequence = 0
        self.sent_back = 0  # so many requests were queued again
        self.passed = []  # those that another host has still to queue again
        self.looks = []  # those that have still to look for cycles
        self.asker = None  # the one that may be told of a deadlock

    def copy(self):
        other = Rules(self.queues, self.hosts, self.parts)
        other.held = {
            file: {owner: Ranges(held.ranges) for owner, held in owners.items()} for file, owners in self.held.items()
        }
        other.since, other.waiting = dict(self.since), list(self.waiting)
        other.sequence, other.sent_back = self.sequence, self.sent_back
        other.through = {key: set(files) for key, files in self.through.items()}
        other.names = set(self.names)
        return other

    @property
    def queue(self):
        """The side with queues: here this one."""
        return self

    #
    # Who is in whose way
    #

    def apart(self, file, owner, other):
        """Whether the locks of two owners never meet."""
        if owner == other:
            return True
        kinds = (owner[0] == "f") + (other[0] == "f")
        if not self.queues or kinds != 1:
            return kinds == 1
        flock, records = (owner, other) if owner[0] == "f" else (other, owner)
        return flock[1] in self.through.get((file, records), ())

    def holders(self, request):
        """The owners of held locks in the way, each with its ranges."""
        found = [
            (owner, held.conflicts(request.start, request.end, request.kind))
            for owner, held in self.held.get(request.file, {}).items()
            if not self.apart(request.file, owner, request.owner)
        ]
        return [(owner, ranges) for owner, ranges in found if ranges]

    def crosses(self, request, other):
        if "w" not in (request.kind, other.kind) or not request.overlaps(other):
            return False
        return not self.apart(request.file, request.owner, other.owner)

    def precedence(self, request, over):
        if not self.queues or request.anchor is None or not request.anchor < over.sequence < request.sequence:
            return False
        return bool(request.holds.overlaps(over.start, over.end))

    def in_front(self, request):
        """The waiting requests that this one is behind."""
        if not self.queues:
            return []
        return [
            other
            for other in self.waiting
            if self.crosses(request, other)
            and other not in self.passed
            and not self.precedence(request, other)
            and (other.sequence < request.sequence or self.precedence(other, request))
        ]

    def covered(self, request):
        """Whether its owner has what it asks for already, or by a flock or exclusive open of a file that it locks
        through."""
        held = self.held.get(request.file, {})
        own = held.get(request.owner, Ranges()).covers(request)
        flocks = [held.get(("f", file), Ranges()) for file in self.through.get((request.file, request.owner), ())]
        return own or any(flock.covers(request) for flock in flocks)

    def free(self, request):
        if self.holders(request):
            return False
        return not self.in_front(request) or self.covered(request)

    #
    # Cycles
    #

    def may_hide(self, waiting):
        """Whether Linux may not see that a process waits: it hangs below what belongs to an open file
        (__locks_insert_block())."""
        owners = [owner for owner, _ in self.holders(waiting)]
        owners += [other.owner for other in self.waiting if self.crosses(waiting, other)]
        return any(owner[0] == "o" for owner in owners)

    def linux_cycles(self, request):
        """Of the ways from the request, by locks that are held: whether any comes back to its owner, and whether each
        does."""
        seen = set()

        def ways(waiting):
            owners = {owner for owner, _ in self.holders(waiting)}
            for other in self.waiting:  # it may hang below one that waits, and so wait for what that waits for
                if self.crosses(waiting, other):
                    owners |= {owner for owner, _ in self.holders(other)} - {waiting.owner}
            backs = [False] if waiting is not request and self.may_hide(waiting) else []
            for owner in sorted(owners):
                if owner == request.owner:
                    backs.append(True)
                    continue
                next_one = next((other for other in self.waiting if other.owner == owner and owner[0] == "p"), None)
                if owner in seen or next_one is None:
                    backs.append(False)
                    continue
                seen.add(owner)
                backs += ways(next_one)
            return backs

        backs = ways(request) if request.owner[0] == "p" else []
        return any(backs), bool(backs) and all(backs)

    def covered_by_flock(self, request):
        """Whether a flock or exclusive open that its owner locks through covers what it asks for."""
        held = self.held.get(request.file, {})
        files = self.through.get((request.file, request.owner), ())
        return any(held.get(("f", file), Ranges()).covers(request) for file in files)

    def passable(self, request):
        """The requests that one waits for as they only wait."""
        return [] if self.covered_by_flock(request) else self.in_front(request)

    def edges(self, request, holders_only):
        """The requests that one waits for, in a search for cycles; and the owners that hold what it asks for. A flock
        may be somebody else's, too, who lets go: what was locked under it counts."""
        owners = {owner for owner, _ in self.holders(request) if owner[0] in RECORDS}
        requests = [other for other in self.waiting if other.owner in owners]
        return owners, requests if holders_only else requests + self.passable(request)

    def reached(self, request, holders_only=False):
        """The requests that one waits for, at whatever remove, in front of whom it may be itself; and the owners."""
        owners, requests, left = set(), set(), [request]
        while left:
            more_owners, more = self.edges(left.pop(), holders_only)
            owners |= more_owners
            left += set(more) - requests
            requests.update(more)
        return owners, requests

    def behind_waiter_of(self, owner):
        """The requests that wait for an owner, at whatever remove, but not by what is held only."""
        return [
            request
            for request in self.waiting
            if owner in self.reached(request)[0] and owner not in self.reached(request, True)[0]
        ]

    def owners_of(self, request):
        """The owners that are one with that of the request: who locks through the file of its flock; else its own."""
        if request.owner[0] != "f":
            return [request.owner]
        return [owner for file, owner in self.through if file == request.file and self.apart(file, owner, request.owner)]

    def in_cycles(self, request, seeker, holders_only):
        """The requests in any cycle of one that waits."""
        if not any(seeker in owners for owners in self.held.values()):
            return set()

        def closes(other):
            owners, requests = self.reached(other, holders_only)
            return seeker in owners or request in requests

        if not closes(request):
            return set()
        return {other for other in self.reached(request, holders_only)[1] | {request} if closes(other)}

    def find_cycle(self, request):
        """What is to be done about a cycle: "none", "deadlock", or the request to be queued again; None: it is open."""
        for seeker in self.owners_of(request):
            found = self.in_cycles(request, seeker, False)
            held = self.in_cycles(request, seeker, True)
            spread = held or found
            if len({other.file for other in spread}) > 1 and len({self.hosts[other.owner] for other in spread}) > 1:
                return None
            if held and request.owner[0] in RECORDS:
                return "deadlock"
            if not found or held:
                continue
            ways = {waiting: self.passable(waiting) for waiting in found if self.gains(waiting, found)}
            if len({waiting.file for waiting in ways}) > 1:
                return None
            if ways:
                first = min(ways, key=lambda waiting: waiting.sequence)
                return min(ways[first], key=lambda other: other.sequence)
        return "none"

    def gains(self, request, cycle):
        """Whether it is granted if those who only wait let it pass, of them who are in a cycle with it."""
        if request in self.passed or self.holders(request) or self.covered_by_flock(request):
            return False
        ways = self.passable(request)
        return bool(ways) and cycle.issuperset(ways)

    #
    # Calls
    #

    def number(self, request):
        self.sequence += 1
        request.sequence = self.sequence
        file, owners = request.file, self.owners_of(request)
        anchors = [self.since[file, owner] for owner in owners if (file, owner) in self.since]
        request.anchor = min(anchors, default=None)
        request.holds = Ranges()
        for owner in [owner for owner in owners if (file, owner) in self.since]:
            for s, e, k in self.held.get(file, {}).get(owner, Ranges()).ranges:
                request.holds.set(s, e, k)

    def ask(self, request, waits):
        """The result of a call that locks, and the slots of those that are granted after it; or None."""
        if any(other.owner == request.owner and other.slot != request.slot for other in self.waiting):
            return None  # another process waits through the same open file: who comes first decides what is held
        granted = self.lock_through(request) if request.owner[0] in RECORDS else []
        if granted is None:
            return None
        outcome = self.ask_numbered(request, waits)
        return outcome and (outcome[0], granted + outcome[1])

    def lock_through(self, request):
        """From now on the owner is one with those who ask by flock of the open file: they may close a cycle."""
        files = self.through.setdefault((request.file, request.owner), set())
        if request.through in files:
            return []
        files.add(request.through)
        owner = ("f", request.through)
        self.looks += [other for other in self.waiting if other.file == request.file and other.owner == owner]
        return [] if self.covered(request) else self.wake()

    def ask_numbered(self, request, waits):
        self.number(request)
        if request.owner[0] == "f":
            held = self.held.get(request.file, {}).get(request.owner, Ranges()).ranges
            if held and held[0][2] == request.kind:
                return "ok", []
            if held and not self.queues and any(self.crosses(request, other) for other in self.waiting):
                return None  # released first, for whom wakes in time
            if held:  # no conversion, says flock(2)
                granted = self.unlock(request.file, request.owner, 0, LAST)
                if granted is None:
                    return None
                self.number(request)
                result = self.take(request, waits)
                return result and (result[0], granted + result[1])
        return self.take(request, waits)

    def open_exclusive(self, request, waits):
        """The same for an open that makes the file."""
        if not self.queues:
            if request.file in self.names:
                return "EAGAIN", []
            self.names.add(request.file)
            return "ok", []
        return self.take_numbered(request, waits)

    def take_numbered(self, request, waits):
        self.number(request)
        return self.take(request, waits)

    def take(self, request, waits):
        if self.free(request):
            self.grant(request)
            return self.woken("ok")
        if not waits:
            return self.woken("EAGAIN")
        self.waiting.append(request)
        if self.queues:
            self.looks.append(request)
            self.asker = request
            granted = self.wake()
            self.asker = None
            if granted is None:
                return None
            result = "waits" if any(other.slot == request.slot for other in self.waiting) else "EDEADLK"
            return ("ok" if request.slot in granted else result), [slot for slot in granted if slot != request.slot]
        some, each = self.linux_cycles(request)
        if some and not each:
            return None
        if some:
            self.waiting.remove(request)
        return self.woken("EDEADLK" if some else "waits")

    def look(self, asker):
        """Breaks the cycles of a request that waits: others may be queued again, and look in their turn. The slots of
        those that are granted by that; or None."""
        granted, back = [], []
        while asker in self.waiting and (found := self.find_cycle(asker)) != "none":
            if found is None or found == "deadlock" and asker is not self.asker:
                return None
            if found == "deadlock":
                self.waiting.remove(asker)
            elif self.hosts[found.owner] == self.hosts[asker.owner]:
                self.waiting.remove(found)
            else:
                self.passed.append(found)
            if found != "deadlock":
                back.append(found)
            granted += self.grant_free()
        if len(back) > 1 and len({self.hosts[other.owner] for other in [asker, *back]}) > 1:
            return None  # hosts queue them again at the same time
        for request in back:
            if request in self.passed:
                self.passed.remove(request)
                self.waiting.remove(request)
            self.queue_again(request).anchor = None
        self.sent_back += len(back)
        if back:
            self.look_all()
        return granted

    def look_all(self):
        """What was in somebody's way in a cycle may have gone."""
        self.looks += [request for request in self.waiting if request not in self.looks]

    def queue_again(self, request):
        again = request.copy()
        self.number(again)
        self.waiting.append(again)
        self.looks.append(again)
        return again

    def woken(self, result):
        granted = self.wake()
        return None if granted is None else (result, granted)

    def grant(self, request):
        if not self.covered(request):
            self.since.setdefault((request.file, request.owner), request.sequence)
        held = self.held.setdefault(request.file, {}).setdefault(request.owner, Ranges())
        held.set(request.start, request.end, request.kind)

    def unlock(self, file, owner, start, end):
        """The slots of those that are granted by that; or None."""
        held = self.held.get(file, {}).get(owner)
        if held and owner[0] == "f":
            under = [other for other in self.held[file] if owner[1] in self.through.get((file, other), ())]
            if self.is_open_under(file, under, held.ranges[0][2]):
                return None
            for other in under:  # from now on by what was the flock's claim
                self.since.setdefault((file, other), self.since[file, owner])
        if held:
            held.set(start, end, "u")
            if not held.ranges:
                del self.held[file][owner]
                self.since.pop((file, owner), None)
        return self.wake()

    def is_open_under(self, file, under, kind):
        """Whether it is left open what becomes of the record locks that are held under a flock, if that goes. For
        other flocks its claim is as exclusive as it was, and it is one owner's if several need it."""
        if not self.parts:
            return bool(under)
        kinds = [k for owner in under for _, _, k in self.held[file][owner].ranges]
        several = sum((file, owner) not in self.since for owner in under) > 1
        return self.queues and (several or kind == "w" and "r" in kinds)

    def close(self, file, process):
        """A process has closed any descriptor of the file."""
        granted = self.unlock(file, process, 0, LAST)
        self.through.pop((file, process), None)
        return granted

    def end(self, file, through):
        """An open file has no descriptor any more."""
        granted = []
        for kind in "of":
            woken = self.unlock(file, (kind, through), 0, LAST)
            if woken is None:
                return None
            granted += woken
        for files in self.through.values():
            files.discard(through)
        return granted

    def forget(self, slot):
        self.waiting = [request for request in self.waiting if request.slot != slot]

    def wake(self):
        """The slots of those that are granted now; or None."""
        granted = self.grant_free()
        if self.queues:
            self.look_all()
        while granted is not None and self.looks:
            more = self.look(self.looks.pop(0))
            granted = None if more is None else granted + more + self.grant_free()
        return granted

    def has_lost_anchor(self, request):
        """Whether nothing is held any more that the request had its anchor by."""
        return request.anchor is not None and not any(
            (request.file, owner) in self.since for owner in self.owners_of(request)
        )

    def grant_free(self):
        granted = []
        while True:
            for request in [request for request in self.waiting if self.queues and self.has_lost_anchor(request)]:
                self.waiting.remove(request)
                self.queue_again(request)
            free = [request for request in self.waiting if request not in self.passed and self.free(request)]
            if not free:
                return granted
            if self.queues:
                free = free[:1]
            else:  # in an order of the kernel's own; and it may hang below a request that goes on waiting
                for request in free:
                    if any(self.crosses(request, other) for other in self.waiting if other is not request):
                        return None
            for request in free:
                self.waiting.remove(request)
                self.grant(request)
                granted.append(request.slot)

    def test(self, request):
        """What F_GETLK may find: (start, end, type, owner), each; or None."""
        kept, key = self.through, (request.file, request.owner)
        self.through = {**kept, key: {*kept.get(key, ()), request.through}}
        found = self.holders(request)
        self.through = kept
        if self.queues:
            host = self.hosts[request.owner]
            away = [other for other in self.waiting if self.hosts[other.owner] != host]
            if any(self.crosses(request, other) for other in away):
                return None
            if any(other.owner == owner and other.file == request.file for owner, _ in found for other in away):
                return None
        return [(s, e, k, owner) for owner, ranges in found for s, e, k in ranges]


class Agreed:
    """Linux and dlockfs at once: an outcome only where both have the same."""

    def __init__(self, sides):
        self.sides = sides

    def copy(self):
        return Agreed([side.copy() for side in self.sides])

    @property
    def waiting(self):
        return self.sides[0].waiting

    @property
    def held(self):
        return self.sides[0].held

    @property
    def queue(self):
        return self.sides[1]

    @property
    def names(self):
        return self.sides[0].names

    def same(self, call):
        outcomes = [call(side) for side in self.sides]
        if None in outcomes or outcomes[0][0] != outcomes[1][0] or set(outcomes[0][1]) != set(outcomes[1][1]):
            return None
        return outcomes[0]

    def same_granted(self, call):
        granted = [call(side) for side in self.sides]
        return granted[0] if None not in granted and set(granted[0]) == set(granted[1]) else None

    def ask(self, request, waits):
        return self.same(lambda side: side.ask(request.copy(), waits))

    def open_exclusive(self, request, waits):
        return self.same(lambda side: side.open_exclusive(request.copy(), waits))

    def unlock(self, file, owner, start, end):
        return self.same_granted(lambda side: side.unlock(file, owner, start, end))

    def close(self, file, process):
        return self.same_granted(lambda side: side.close(file, process))

    def end(self, file, through):
        return self.same_granted(lambda side: side.end(file, through))

    def forget(self, slot):
        for side in self.sides:
            side.forget(slot)

    def wake(self):
        return self.same_granted(lambda side: side.wake())

    def test(self, request):
        return self.same_granted(lambda side: side.test(request.copy()))
