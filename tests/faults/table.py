#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results of run.sh: table.py [--all | --totals] FOLDER...

A row a contender, a column a fault; those that are much alike share a column, unless --all is given. A cell says what went
wrong in all histories of that kind, `0` if nothing did, `-` if there is no such fault. In a cell

    N (S s)     so many held the lock beside another one while they had not been told, the longest for S seconds
    late N      so many were told after another one was granted, or never, but did nothing meanwhile; (S s): by how much at most
    lost N      so many lost the lock without a fault
    back N      tokens that did not grow
    stuck N     calls that were not answered when all was well again
    broken N    the register was not linearizable

Behind the faults stand figures: how long after its link was cut a holder was told; the longest time from the end of any fault to the
next grant; how many were overtaken without a fault; how many locks were taken, and how many faults there were, in all.

--totals prints one line a contender: how much was tried, how much of it was wrong, and for how long. A fault was on for
so long; and from the first fault of each history to the last it took so long, which is what the hours are that count.
"""

import collections
import json
import sys

import check
import nemesis
import run

COLUMNS = {
    "no fault": ("calm",),
    "link": ("cut", "cut-out", "cut-in", "cut-leader", "flap", "link-lossy", "link-slow"),
    "holder stopped": ("holder-stop",),
    "holder killed": ("holder-kill",),
    "agent stopped, killed": ("agent-stop", "agent-kill"),
    "guard stopped, killed": ("guard-stop", "guard-kill"),
    "host stopped": ("host-stop",),
    "leader cut off, killed, stopped, moved": ("leader-cut", "leader-kill", "leader-stop", "leader-move"),
    "another server stopped, killed": ("follower-stop", "follower-kill"),
    "all servers killed": ("all-kill",),
    "slow disks": ("disk", "leader-disk"),
    "compaction": ("compact",),
    "their data gone": ("all-wipe",),
    "a backup": ("backup",),
    "their clocks set": ("clock",),
    "hosts' clocks fast, slow": ("drift",),
    "mixed": ("mix",),
}
SUMS = ("acquired", "faults", "double", "double_refused", "late", "never", "lost", "back", "stuck", "register", "overtaken", "fault_s", "under_s")
GREATEST = ("longest_s", "latest_s", "told_after_s", "away_s")


def load(folders):
    """The totals by contender and fault."""
    totals = collections.defaultdict(collections.Counter)
    for folder in folders:
        with open(f"{folder}/results.jsonl", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                total = totals[row["contender"], row["fault"]]
                total["histories"] += 1
                for name in SUMS:
                    total[name] += row[name]
                for name in GREATEST:
                    total[name] = max(total[name], row[name])
    return totals


def together(totals):
    found = collections.Counter()
    for total in totals:
        for name in (*SUMS, "histories"):
            found[name] += total[name]
        for name in GREATEST:
            found[name] = max(found[name], total[name])
    return found


def cell(total):
    if not total["histories"]:
        return "-"
    words = []
    if total["double"]:
        words.append(f"{total['double']} ({total['longest_s']:.2f} s)")
    late = total["late"] + total["never"] - total["double"]
    if late > 0:
        words.append(f"late {late}" + ("" if total["double"] or total["never"] else f" ({total['latest_s']:.2f} s)"))
    for name, word in (("lost", "lost"), ("back", "back"), ("stuck", "stuck"), ("register", "broken")):
        if total[name]:
            words.append(f"{word} {total[name]}")
    return ", ".join(words) or "0"


def hours(seconds):
    return f"{seconds / 3600:.2f} h"


def print_totals(totals):
    columns = ("histories", "under faults", "a fault on", "faults", "locks", *check.BAD)
    print("|", " | ".join(["", *columns]), "|")
    print("|" + "---|" * (1 + len(columns)))
    rows = {contender.label: [total for (each, _), total in totals.items() if each == key] for key, contender in run.CONTENDERS.items()}
    rows["all"] = list(totals.values())
    for label, parts in rows.items():
        total = together(parts)
        figures = [total["histories"], hours(total["under_s"]), hours(total["fault_s"]), total["faults"], total["acquired"]]
        if parts:
            print("|", " | ".join([label, *map(str, figures), *(str(total[name]) for name in check.BAD)]), "|")


def main():
    folders = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not folders:
        sys.exit(__doc__)
    totals = load(folders)
    if "--totals" in sys.argv:
        print_totals(totals)
        return
    columns = {fault: (fault,) for fault in (*nemesis.FAULTS, "mix")} if "--all" in sys.argv else COLUMNS
    seen = {fault for _, fault in totals}
    columns = {name: faults for name, faults in columns.items() if seen & set(faults)}
    figures = ("told after", "away", "overtaken", "locks", "faults")
    print("|", " | ".join(["", *columns, *figures]), "|")
    print("|" + "---|" * (1 + len(columns) + len(figures)))
    for key, contender in run.CONTENDERS.items():
        if not any(each == key for each, _ in totals):
            continue
        row = [cell(together(totals[key, fault] for fault in faults)) for faults in columns.values()]
        total = together(total for (each, _), total in totals.items() if each == key)
        calm, cut = totals[key, "calm"], together(totals[key, fault] for fault in ("cut", "cut-out", "cut-in"))
        told = f"{cut['told_after_s']:.1f} s" if cut["told_after_s"] else "never"
        row += [told if cut["histories"] else "-", f"{total['away_s']:.1f} s", str(calm["overtaken"]) if calm["histories"] else "-"]
        print("|", " | ".join([contender.label, *row, str(total["acquired"]), str(total["faults"])]), "|")


if __name__ == "__main__":
    main()
