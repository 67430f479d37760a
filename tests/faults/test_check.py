#!/usr/bin/python3
"""What check.py finds in histories that are wrong in each way, and that it finds nothing in those that are right."""

import itertools
import random
import unittest

import check
import linearizable
from linearizable import INFINITY, Operation

SECOND = 10**9


def event(time, process, kind, call, **values):
    return {"time": int(time * SECOND), "process": process, "type": kind, "f": call, "lock": "one", **values}


def nemesis(time, call, value=""):
    return event(time, "nemesis", "info", call, value=value)


class Story:
    """Writes a history in which calls take a hundredth of a second, and the register is right unless told otherwise."""

    def __init__(self):
        self.events = []
        self.value, self.number = None, 0

    def acquire(self, process, asked, granted, token=None, kind="ok"):
        self.events += [event(asked, process, "invoke", "acquire"), event(granted, process, kind, "acquire", token=token)]
        return self

    def write(self, process, time, token=None, kind="ok", **wrong):
        self.number += 1
        answer = {"at": int((time + 0.005) * SECOND), "value": self.number}
        if kind == "ok":
            answer.update(was=self.value)
            self.value = self.number
        self.events.append(event(time, process, "invoke", "write", value=self.number, token=token))
        if kind != "lost":
            self.events.append(event(time + 0.01, process, kind, "write", **{**answer, **wrong}))
        return self

    def release(self, process, time):
        self.events += [event(time, process, "invoke", "release"), event(time + 0.01, process, "ok", "release")]
        return self

    def told(self, process, time, call="told"):
        self.events.append(event(time, process, "info", call))
        return self

    def fault(self, begin, end):
        self.events += [nemesis(begin, "begin", "cut"), nemesis(end, "end")]
        return self

    def invoke(self, process, time):
        self.events.append(event(time, process, "invoke", "acquire"))
        return self

    def check(self, over=100.0, calm=50.0):
        events = self.events + [nemesis(calm, "calm"), nemesis(over, "over")]
        return check.check(events)[0]


class Found(unittest.TestCase):
    def found(self, story, **expected):
        """Only what is named is wrong."""
        counts = story.check()
        wrong = {name: counts[name] for name in check.BAD if counts[name]}
        self.assertEqual(wrong, {name: value for name, value in expected.items() if name in check.BAD and value})
        for name, value in expected.items():
            self.assertAlmostEqual(counts[name], value, 6, name)

    def two(self, granted=2.0):
        """A1 holds from second 1 on and is not told; B1 is granted the lock."""
        return Story().acquire("A1", 0.5, 1, 1).write("A1", 1.1, 1).acquire("B1", 1.5, granted, 2)

    def test_right(self):
        story = Story().acquire("A1", 0.5, 1, 1).write("A1", 1.1, 1).release("A1", 1.5).acquire("B1", 1.2, 1.6, 2)
        self.found(story.write("B1", 1.7, 2).release("B1", 2), double=0, overtaken=0)

    def test_double(self):
        story = self.two().write("A1", 2.5, 1).write("B1", 2.6, 2).release("A1", 3).release("B1", 3)
        self.found(story, double=1, never=1, longest_s=0.505, double_refused=0)

    def test_double_refused(self):
        story = self.two().write("B1", 2.4, 2).write("A1", 2.5, 1, "fail").release("A1", 3).release("B1", 3)
        self.found(story, double=1, never=1, double_refused=1)

    def test_double_by_effect(self):
        """The call was made before the other's grant, and had its effect behind it."""
        story = self.two().write("A1", 1.9, 1, at=int(2.2 * SECOND)).told("A1", 2.3).release("B1", 3).fault(1, 2)
        self.found(story, double=1, late=1, longest_s=0.2, latest_s=0.3)

    def test_many_locks(self):
        """Locks exclude nobody from another one."""
        story = self.two().write("A1", 2.5, 1).release("A1", 3).release("B1", 3)
        for each in story.events:
            if each["process"] == "B1":
                each["lock"] = "two"
        self.found(story)

    def test_late(self):
        self.found(self.two().told("A1", 2.25).release("B1", 3).fault(1.05, 2), late=1, latest_s=0.25, told=1, told_after_s=1.2)

    def test_in_time(self):
        self.found(self.two().told("A1", 1.75).release("B1", 3).fault(1.05, 2), told=1, told_after_s=0.7)

    def test_never(self):
        self.found(self.two().release("A1", 2.5).release("B1", 3), never=1)

    def test_killed(self):
        self.found(self.two().told("A1", 2.5, "killed").release("B1", 3))

    def test_lost(self):
        self.found(self.two().told("A1", 1.75).release("B1", 3).fault(20, 21), lost=1)

    def test_back_later(self):
        story = Story().acquire("A1", 0.5, 1, 2).release("A1", 1.5).acquire("B1", 2, 2.1, 1).release("B1", 3)
        self.found(story, back=1)

    def test_back_waiter(self):
        """The second one asked before the first one was granted, and is granted when that is over."""
        story = Story().acquire("A1", 0.5, 1, 2).release("A1", 1.5).acquire("B1", 0.9, 1.6, 2).release("B1", 3)
        self.found(story, back=1, overtaken=0)

    def test_stuck(self):
        self.found(Story().acquire("A1", 1, 1.1).release("A1", 1.2).invoke("B1", 60), stuck=1)

    def test_not_stuck(self):
        self.found(Story().acquire("A1", 1, 1.1).release("A1", 1.2).invoke("B1", 90))

    def test_away(self):
        story = Story().acquire("A1", 1, 1.1).release("A1", 1.2).fault(2, 4).acquire("A1", 3, 6.5).release("A1", 7)
        self.found(story, away_s=2.5)

    def test_overtaken(self):
        story = Story().acquire("A1", 0.5, 3).release("A1", 4).acquire("B1", 1, 2).release("B1", 2.5)
        self.found(story, overtaken=1)

    def test_together(self):
        """Who asks at nearly the same time has no order."""
        self.found(Story().acquire("A1", 0.95, 3).release("A1", 4).acquire("B1", 1, 2).release("B1", 2.5), overtaken=0)

    def held(self):
        return Story().acquire("A1", 0.5, 1, 5)

    def test_register_value(self):
        story = self.held().write("A1", 1.1, 5).write("A1", 1.2, 5, was=77)
        self.found(story.release("A1", 2), register=1)

    def test_register_gap(self):
        self.found(self.held().write("A1", 1.1, 5, was=9).release("A1", 2), register=1)

    def test_register_twice(self):
        """Two find the same value."""
        story = self.held().write("A1", 1.1, 5).write("A1", 1.2, 5, was=None)
        self.found(story.release("A1", 2), register=1)

    def test_register_order(self):
        """The second write ended before the first one began, by its number."""
        story = self.held().write("A1", 1.1, 5, was=2).write("A1", 1.2, 5, was=None)
        self.found(story.release("A1", 2), register=1)

    def test_register_late(self):
        """A change is seen before it is asked for."""
        story = self.held().write("A1", 1.1, 5, was=99)
        story.events.append(event(1.2, "A1", "invoke", "write", value=99, token=5))
        self.found(story.told("A1", 1.3, "killed"), register=1)

    def test_register_refused(self):
        """Nothing greater has been seen."""
        self.found(self.held().write("A1", 1.1, 5).write("A1", 1.2, 5, "fail").release("A1", 2), register=1)

    def test_register_token(self):
        """It has to refuse what is smaller."""
        story = self.held().write("A1", 1.1, 5).write("A1", 1.2, 4)
        self.found(story.release("A1", 2), register=1)

    def test_register_unknown(self):
        """A write without an answer fills the gap."""
        story = self.held().write("A1", 1.1, 5)
        story.events.append(event(1.2, "A1", "invoke", "write", value=50, token=5))
        story.told("A1", 1.3, "killed").acquire("B1", 2, 2.1, 6)
        story.events += [event(2.2, "B1", "invoke", "write", value=51, token=6), event(2.3, "B1", "ok", "write", was=50, value=51)]
        self.found(story.release("B1", 3), register=0)

    def test_broken(self):
        for wrong in (
            self.held().write("B1", 2),
            self.held().acquire("A1", 2, 3),
            Story().invoke("A1", 1).invoke("A1", 2),
        ):
            with self.assertRaises(check.Broken):
                wrong.check()
        with self.assertRaises(check.Broken):
            check.check(self.held().events)


class Search(unittest.TestCase):
    """Short histories, by the search and by trying all orders."""

    @staticmethod
    def has_order(operations):
        open_ones = [each for each in operations if each.end == INFINITY]
        for count in range(len(open_ones) + 1):
            for left_out in itertools.combinations(open_ones, count):
                kept = [each for each in operations if each not in left_out]
                if any(Search.explains(order) for order in itertools.permutations(kept)):
                    return True
        return False

    @staticmethod
    def explains(order):
        state = (None, None)
        for number, each in enumerate(order):
            state = each.apply(state)
            if state is None or any(later.end < each.begin for later in order[number:]):
                return False
        return True

    @staticmethod
    def some(choice):
        """Four processes that write one after the other; a register answers, and now and then another answer is put in its place."""
        operations, state, free = [], (None, None), [0] * 4
        for number in range(choice.randint(1, 6)):
            process = choice.randrange(4)
            begin = free[process] + choice.random()
            end = free[process] = begin + choice.random() * 3
            operations.append(Operation(begin, end, number + 1, token=choice.choice((None, None, 1, 2))))
        for each in sorted(operations, key=lambda each: choice.uniform(each.begin, each.end)):
            value, seen = state
            each.refused = each.token is not None and seen is not None and each.token < seen
            each.was = None if each.refused else value
            state = state if each.refused else each.apply(state)
            if choice.random() < 0.1:
                each.was = choice.choice((None, 1, 2, 3))
            if choice.random() < 0.1:
                each.end = INFINITY
        return operations

    def test_search(self):
        choice = random.Random(1)
        count = [0, 0]
        for _ in range(500):
            operations = self.some(choice)
            expected = self.has_order(operations)
            count[expected] += 1
            self.assertEqual(linearizable.search(operations) is None, expected)
        self.assertGreater(min(count), 50)


if __name__ == "__main__":
    unittest.main()
