# SPDX-License-Identifier: Apache-2.0
"""Tables, CSV and the comparison with what was set out to be reached."""

import csv

COLUMNS = {
    "rate": ("per s", "{:.0f}"),
    "median_us": ("median", "{:.0f}"),
    "p99_us": ("p99", "{:.0f}"),
    "ratio": ("ratio", "{:.2f}"),
    "writer_us": ("writers", "{:.0f}"),
    "overtaken": ("overtaken", "{:.1%}"),
    "out_of_order": ("unordered", "{:d}"),
    "requests": ("requests", "{:.2f}"),
    "sets": ("SETs", "{:.2f}"),
    "fuse_requests": ("FUSE", "{:.2f}"),
    "refused": ("given up", "{:d}"),
    "saved": ("saved", "{:.0%}"),
}

# What the table of a workload shows, and what that means.
TABLES = {
    "alone": (
        ["median_us", "p99_us", "ratio", "requests", "fuse_requests"],
        "one client takes and releases a lock that nobody else wants; microseconds of a cycle, ratio to the raw client",
    ),
    "many": (
        ["rate", "ratio", "median_us", "p99_us", "requests"],
        "{size} locks at once, a client each; cycles a second, ratio to the raw client, microseconds of a cycle",
    ),
    "contended": (
        ["rate", "median_us", "p99_us", "ratio", "overtaken", "requests"],
        "{size} clients want one lock; locks a second, microseconds of a hand-over (on 3 hosts: from one to "
        "another), ratio to delete + watch event",
    ),
    "readers": (
        ["rate", "median_us", "p99_us", "writer_us", "requests"],
        "{size} clients, 95 % readers, held for 1 ms; locks a second, microseconds that readers and writers wait",
    ),
    "waiters": (
        ["rate", "median_us", "p99_us", "ratio", "out_of_order", "requests"],
        "{size} waiters on one lock that is passed on to each; locks a second, microseconds of a hand-over (on 3 hosts: from "
        "one to another), ratio to delete + watch event",
    ),
    "crowded": (
        ["median_us", "p99_us", "ratio", "requests", "fuse_requests"],
        "the same as alone, while {size} other locks are held",
    ),
    "savings": (
        ["requests", "sets", "saved", "rate", "median_us", "p99_us", "refused"],
        "three hosts with four clients each, one lock, held for 1 ms, given up after 1 s; requests of an attempt, and those of "
        "them that are SETs of Redis, what is saved against strict (of SETs: against plain clients of Redis), microseconds of "
        "waiting",
    ),
}

# The columns of the summary: what they say, and which value that is.
SUMMARY = (
    ("alone, µs", "alone", 1, "median_us"),
    ("p99", "alone", 1, "p99_us"),
    ("× raw client", "alone", 1, "ratio"),
    ("requests", "alone", 1, "requests"),
    ("64 locks, per s", "many", 64, "rate"),
    ("8 clients, per s", "contended", 8, "rate"),
    ("128 clients, per s", "contended", 128, "rate"),
    ("overtaken", "contended", 128, "overtaken"),
    ("hand-over, µs", "waiters", 10, "median_us"),
    ("p99", "waiters", 10, "p99_us"),
)


def text(row, column):
    value = row.values.get(column)
    return "-" if value is None else COLUMNS[column][1].format(value)


def print_tables(rows):
    """Prints rows of one workload, a table for each size."""
    for workload, size in dict.fromkeys((row.workload, row.size) for row in rows):
        columns, title = TABLES[workload]
        print(f"\n{workload}: {title.format(size=f'{size:,}')}")
        print(f"{'':38}" + "".join(f" {COLUMNS[column][0]:>9}" for column in columns))
        for row in rows:
            if (row.workload, row.size) != (workload, size):
                continue
            cells = "".join(f" {text(row, column):>9}" for column in columns) if row.values else ""
            print(f"{row.label:38}{cells}{'  ' + row.note if row.note else ''}", flush=True)


def print_summary(rows):
    """Prints the most telling values of all contenders as Markdown."""
    values = {(row.workload, row.size, row.key): row for row in rows}
    contenders = {row.key: row.label for row in rows if row.workload != "savings"}
    print("\n| | " + " | ".join(header for header, *_ in SUMMARY) + " |")
    print("|---" + "|---:" * len(SUMMARY) + "|")
    for key, label in contenders.items():
        cells = [
            text(values[workload, size, key], column) if (workload, size, key) in values else "-"
            for _, workload, size, column in SUMMARY
        ]
        if set(cells) != {"-"}:
            print(f"| {label} | " + " | ".join(cells) + " |")


def write_csv(rows, file):
    with open(file, "w", newline="", encoding="utf-8") as output:
        writer = csv.writer(output)
        writer.writerow(["workload", "size", "key", "contender", *COLUMNS, "note"])
        for row in rows:
            values = [row.values.get(column, "") for column in COLUMNS]
            writer.writerow([row.workload, row.size, row.key, row.label, *values, row.note])


class Reach:
    """Compares what was measured with what it was set out to be."""

    def __init__(self, rows):
        self.values = {(row.workload, row.size, row.key): row.values for row in rows}

    def value(self, workload, size, key, column):
        return self.values.get((workload, size, key), {}).get(column)

    def relation(self, what, first, second, at_most=None, at_least=None):
        one, other = self.value(*first), self.value(*second)
        if one is None or not other:
            return
        self.line(what, one / other, at_most, at_least, "{:.2f}")

    def number(self, what, value, at_most=None, at_least=None, form="{:.2f}"):
        if self.value(*value) is not None:
            self.line(what, self.value(*value), at_most, at_least, form)

    @staticmethod
    def line(what, found, at_most, at_least, form):
        reached = found <= at_most if at_most is not None else found >= at_least
        limit = f"<= {form.format(at_most)}" if at_most is not None else f">= {form.format(at_least)}"
        print(f"{what:68} {form.format(found):>8}  {limit:>8}  {'yes' if reached else 'NO'}")

    def print(self):
        if not self.values:
            return
        print(f"\n{'reach':68} {'found':>8}  {'wanted':>8}  reached")
        median = "median_us"
        strict, keep = ("alone", 1, "strict", median), ("alone", 1, "keep", median)
        self.relation("take and release, strict / raw client", strict, ("alone", 1, "raw", median), 1.15)
        self.relation("take and release, strict / Curator", strict, ("alone", 1, "mutex", median), 1)
        self.relation("take and release, state kept / raw client", ("alone", 1, "kept", median), ("alone", 1, "raw", median), 1.15)
        self.number("take and release with keep: requests to ZooKeeper", ("alone", 1, "keep", "requests"), 0.01)
        self.number("take and release with keep: FUSE requests", ("alone", 1, "keep", "fuse_requests"), 3)
        self.relation("take and release, keep / GlusterFS", keep, ("alone", 1, "gluster", median), 1)
        self.relation("take and release, keep / FUSE mount that locks nothing", keep, ("alone", 1, "fuse-floor", median), 1.15)
        self.relation("take and release, strict / raw client: p99", ("alone", 1, "strict", "p99_us"), ("alone", 1, "raw", "p99_us"), 1.2)
        self.relation(
            "64 locks at once, strict / raw client: rate", ("many", 64, "strict", "rate"), ("many", 64, "raw", "rate"), at_least=0.8
        )
        for trip in "read", "write":
            self.relation(
                f"10 waiters on one host, strict: hand-over / one {trip}",
                ("waiters", 10, "strict", median), ("waiters", 10, trip, median), 0.3,
            )
        self.relation(
            "10 waiters on one host, state kept: hand-over / one write",
            ("waiters", 10, "kept", median), ("waiters", 10, "write", median), 0.3,
        )
        self.relation(
            "10 waiters on three hosts, strict: hand-over / delete + watch event",
            ("waiters", 10, "strict3", median), ("waiters", 10, "handover", median), 1.2,
        )
        self.number(
            "10 waiters on three hosts, strict: out of order", ("waiters", 10, "strict3", "out_of_order"), 0, form="{:.0f}"
        )
        for size in sorted({size for workload, size, _ in self.values if workload == "waiters"}):
            self.number(
                f"{size:,} waiters on one host, strict: out of order",
                ("waiters", size, "strict", "out_of_order"), 0, form="{:.0f}",
            )
        for size in sorted({size for workload, size, _ in self.values if workload == "contended"}):
            self.number(
                f"{size} clients on one host, strict: overtaken",
                ("contended", size, "strict", "overtaken"), 0.005, form="{:.1%}",
            )
        self.print_peers("10 waiters on three hosts with peers", "")
        self.print_etcd()
        self.print_redis()
        self.relation(
            "8 clients, handoff / GlusterFS: rate",
            ("contended", 8, "handoff", "rate"), ("contended", 8, "gluster", "rate"), at_least=2,
        )
        for key, name in ("handoff3", "handoff"), ("both3", "handoff and keep"):
            self.number(
                f"requests saved by {name} on three hosts", ("savings", 12, key, "saved"), at_least=0.7, form="{:.0%}"
            )

    def print_peers(self, what, servers):
        """Hand-overs between hosts that tell each other."""
        hand_over, median = ("waiters", 10, f"peers{servers}3", "median_us"), "median_us"
        self.relation(f"{what}: hand-over / delete + watch event", hand_over, ("waiters", 10, f"handover{servers}", median), 0.5)
        here, packet = self.value("waiters", 10, f"strict{servers}", median), self.value("waiters", 10, "oneway", median)
        if here and packet:
            self.number(f"{what}: hand-over, µs; one host + 1.5 × UDP", hand_over, here + 1.5 * packet, form="{:.0f}")
        self.number(f"{what}: out of order", ("waiters", 10, f"peers{servers}3", "out_of_order"), 0, form="{:.0f}")
        for size in sorted({size for workload, size, _ in self.values if workload == "contended"}):
            self.number(
                f"{what.replace('10 waiters', f'{size} clients')}: overtaken",
                ("contended", size, f"peers{servers}3", "overtaken"), 0.005, form="{:.1%}",
            )

    def print_etcd(self):
        strict, median = ("alone", 1, "strict-etcd", "median_us"), "median_us"
        self.relation("etcd: take and release, strict / raw client", strict, ("alone", 1, "raw-etcd", median), 1.15)
        self.relation("etcd: take and release, strict / lock API", strict, ("alone", 1, "etcd", median), 1)
        self.relation("etcd: take and release, strict / etcdctl lock", strict, ("alone", 1, "etcdctl", median), 1)
        self.relation(
            "etcd: 64 locks at once, strict / raw client: rate",
            ("many", 64, "strict-etcd", "rate"), ("many", 64, "raw-etcd", "rate"), at_least=0.9,
        )
        self.relation(
            "etcd: 10 waiters on three hosts: hand-over / delete + watch event",
            ("waiters", 10, "strict-etcd3", median), ("waiters", 10, "handover-etcd", median), 1.2,
        )
        self.print_peers("etcd: 10 waiters on three hosts with peers", "-etcd")
        for size in sorted({size for workload, size, _ in self.values if workload == "waiters"}):
            self.number(f"etcd: {size:,} waiters on one host: requests", ("waiters", size, "strict-etcd", "requests"), 3)

    def print_redis(self):
        strict, raw = ("alone", 1, "strict-redis", "median_us"), ("alone", 1, "raw-redis", "median_us")
        self.relation("Redis: take and release, strict / raw client", strict, raw, 1.2)
        self.number("Redis: take and release with keep: requests", ("alone", 1, "keep-redis", "requests"), 0.01)
        for key, name in ("strict-redis3", "strict"), ("handoff-redis3", "handoff"):
            self.number(
                f"Redis: SETs saved by {name} on three hosts", ("savings", 12, key, "saved"), at_least=0.7, form="{:.0%}"
            )
