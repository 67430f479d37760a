#!/usr/bin/python3
"""What check.py finds in histories that are wrong in each way, and that it finds nothing in those that are right."""

import unittest

import check

SECOND = 10**9


def event(time, process, kind, call, **values):
    return {"time": int(time * SECOND), "process": process, "type": kind, "f": call, "lock": "one", **values}


def nemesis(time, call, value=""):
    return event(time, "nemesis", "info", call, value=value)


class Story:
    """Writes a history in which calls take a hundredth of a second, and the register is right unless told otherwise."""

    def __init__(self):
        self.events = []
        self.seq, self.value, self.number = 0, None, 0

    def acquire(self, process, asked, granted, token=None, kind="ok"):
        self.events += [event(asked, process, "invoke", "acquire"), event(granted, process, kind, "acquire", token=token)]
        return self

    def write(self, process, time, token=None, kind="ok", **wrong):
        self.number += 1
        answer = {"at": int((time + 0.005) * SECOND), "value": self.number}
        if kind == "ok":
            self.seq += 1
            answer.update(seq=self.seq, was=self.value)
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
        self.found(self.held().write("A1", 1.1, 5, seq=2, was=9).release("A1", 2), register=1)

    def test_register_twice(self):
        story = self.held().write("A1", 1.1, 5).write("A1", 1.2, 5, seq=1)
        self.found(story.release("A1", 2), register=1)

    def test_register_order(self):
        """The second write ended before the first one began, by its number."""
        story = self.held().write("A1", 1.1, 5, seq=2, was=2).write("A1", 1.2, 5, seq=1, was=None)
        self.found(story.release("A1", 2), register=1)

    def test_register_token(self):
        """It has to refuse what is smaller."""
        story = self.held().write("A1", 1.1, 5).write("A1", 1.2, 4)
        self.found(story.release("A1", 2), register=1)

    def test_register_unknown(self):
        """A write without an answer fills the gap."""
        story = self.held().write("A1", 1.1, 5)
        story.events.append(event(1.2, "A1", "invoke", "write", value=50, token=5))
        story.told("A1", 1.3, "killed").acquire("B1", 2, 2.1, 6)
        story.events += [event(2.2, "B1", "invoke", "write", value=51, token=6), event(2.3, "B1", "ok", "write", seq=3, was=50, value=51)]
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


if __name__ == "__main__":
    unittest.main()
