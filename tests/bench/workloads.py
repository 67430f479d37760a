# SPDX-License-Identifier: Apache-2.0
"""The workloads. Each is a generator of rows; the contenders take turns, so that whatever else the machine does meets
all of them."""

import statistics
from dataclasses import dataclass, field

import analysis
from contenders import Counter
from driver import Failed

HOLD_US = 1000  # where a lock is held for a while
HOLD_LIMIT_S = 150  # until very many are held
APART_US = 10000  # until a claim stands in the queue on the servers, so that hosts take turns there
QUEUE_HOLD_US = 100000  # until all who have asked for it stand in its queue, also on the servers


@dataclass
class Sizes:
    alone_rounds: int = 10
    alone_ms: int = 250
    rounds: int = 2
    round_ms: int = 700
    floor_ms: int = 100
    many: tuple = (64, 1000)
    many_rounds: int = 5
    contended: tuple = (2, 8, 32, 128)
    readers: int = 32
    waiters: tuple = (10, 100, 1000, 10000)
    rounds_of_waiters: int = 30
    held: int = 100000
    attempts: int = 100


QUICK = Sizes(
    alone_rounds=2, alone_ms=60, rounds=1, round_ms=150, many=(8,), many_rounds=1, contended=(2, 8), readers=8,
    waiters=(10,), rounds_of_waiters=2, held=500, attempts=10,
)


@dataclass
class Row:
    workload: str
    size: int
    key: str
    label: str
    note: str = ""
    floor: str = ""  # after the keys of the floors that it is related to
    values: dict = field(default_factory=dict)


class Bench:
    def __init__(self, contenders, address, sizes):
        self.contenders = contenders
        self.address = address
        self.sizes = sizes

    def taking_part(self, workload, size=0):
        return [contender for contender in self.contenders if contender.takes_part(workload, size)]


class Measurement:
    """What one contender does in one workload, over some rounds."""

    def __init__(self, bench, workload, size, contender):
        self.contender = contender
        self.row = Row(workload, size, contender.key, contender.label, floor=contender.floor)
        self.counter = Counter(contender, bench.address)
        self.rounds = []
        if contender.missing:
            self.row.note = f"missing: {contender.missing}"

    def order(self, verb, exclusive=True, counted=True, **numbers):
        """A round; one that fails is the last."""
        if self.row.note:
            return
        try:
            if not counted:
                self.contender.driver.order(verb, **numbers)
                return
            with self.counter:
                records = self.contender.driver.order(verb, **numbers)
        except (Failed, OSError) as error:
            self.row.note = f"failed: {error}"
            return
        self.rounds.append(records)
        if exclusive and (count := analysis.overlaps(records)):
            self.row.note = f"NOT EXCLUSIVE: {count} overlaps"

    @property
    def records(self):
        return [record for records in self.rounds for record in records]

    def over_rounds(self, function):
        return [value for records in self.rounds for value in function(records)]

    def put(self, **values):
        self.row.values.update(values)

    def put_times(self, times):
        if times:
            self.put(median_us=analysis.quantile(times, 0.5), p99_us=analysis.quantile(times, 0.99))

    def put_hand_overs(self):
        hosts = int(self.contender.words.get("hosts", 1))
        self.put_times(self.over_rounds(lambda records: analysis.hand_overs(records, hosts)))

    def put_rate(self, seconds):
        rates = [analysis.rate(records, seconds) for records in self.rounds if records]
        if rates:
            self.put(rate=statistics.median(rates))

    def put_cycles(self, seconds):
        if self.rounds:
            self.put_times(self.over_rounds(analysis.cycle_times))
            self.put_rate(seconds)
            self.put_requests()

    def put_requests(self, attempts=False):
        records = self.records
        self.put(**self.counter.per(len(records if attempts else analysis.granted(records))))


def put_ratio(rows, base, key="median_us"):
    """Relates a value of all rows to that of the row among them with the key base, for the same servers."""
    values = {row.key: row.values.get(key) for row in rows}
    for row in rows:
        by = values.get(base + row.floor)
        if by and row.values.get(key):
            row.values["ratio"] = row.values[key] / by


def alone(bench):
    """One client, a lock that nobody else wants."""
    yield from alone_rounds(bench, "alone", bench.taking_part("alone"))


def alone_rounds(bench, workload, contenders, size=1):
    measurements = [Measurement(bench, workload, size, contender) for contender in contenders]
    numbers = {"clients": 1, "seconds_ms": bench.sizes.alone_ms, "cycles": 20000}
    for measurement in measurements:
        measurement.order("run", counted=False, **numbers)  # warms up
    for _ in range(bench.sizes.alone_rounds):
        for measurement in measurements:
            measurement.order("run", **numbers)
    for measurement in measurements:
        measurement.put_cycles(bench.sizes.alone_ms / 1000)
    rows = [measurement.row for measurement in measurements]
    put_ratio(rows, "raw")
    yield from rows


def many(bench):
    """Many locks at once, each wanted by one client."""
    for size in bench.sizes.many:
        measurements = [Measurement(bench, "many", size, contender) for contender in bench.taking_part("many", size)]
        for measurement in measurements:  # makes what is above the claims
            measurement.order("run", counted=False, clients=size, own=1, seconds_ms=60000, cycles=1)
        for _ in range(bench.sizes.many_rounds):
            for measurement in measurements:
                measurement.order(
                    "run", exclusive=False, clients=size, own=1, seconds_ms=bench.sizes.round_ms, cycles=5000
                )
        for measurement in measurements:
            measurement.put_cycles(bench.sizes.round_ms / 1000)
        rows = [measurement.row for measurement in measurements]
        put_ratio(rows, "raw", "rate")
        yield from rows


class Floors:
    """What it takes at least that hosts tell each other something, through servers and by themselves, measured in the
    rounds of a workload."""

    VERBS = {
        "raw": {
            "read": "{}: one read",
            "write": "{}: one write",
            "handover": "{}: delete + watch event",
        },
        "udp": {"oneway": "UDP: one way"},
    }

    def __init__(self, bench, workload, size):
        self.time_ms = bench.sizes.floor_ms
        self.measurements = []
        for contender in bench.contenders:
            for verb, label in self.VERBS.get(contender.key.split("-")[0], {}).items():
                measurement = Measurement(bench, workload, size, contender)
                measurement.row.key = verb + contender.floor
                measurement.row.label = label.format(contender.servers)
                self.measurements.append((verb, measurement))

    def measure(self):
        for verb, measurement in self.measurements:
            measurement.order(verb, exclusive=False, seconds_ms=self.time_ms, cycles=5000)

    def rows(self):
        for _, measurement in self.measurements:
            measurement.put_times(measurement.over_rounds(analysis.cycle_times))
        return [measurement.row for _, measurement in self.measurements]


def contended(bench):
    """One lock that all clients want all the time."""
    for size in bench.sizes.contended:
        floors = Floors(bench, "contended", size)
        measurements = [
            Measurement(bench, "contended", size, contender) for contender in bench.taking_part("contended", size)
        ]
        for _ in range(bench.sizes.rounds):
            floors.measure()
            for measurement in measurements:
                measurement.order("run", clients=size, seconds_ms=bench.sizes.round_ms, cycles=5000)
        rows = floors.rows()
        for measurement in measurements:
            rows.append(measurement.row)
            if not measurement.rounds:
                continue
            measurement.put_hand_overs()
            measurement.put_rate(bench.sizes.round_ms / 1000)
            shares = [analysis.overtaken(records) for records in measurement.rounds]
            measurement.put(overtaken=sum(shares) / len(shares))
            measurement.put_requests()
        put_ratio(rows, "handover")
        yield from rows


def readers(bench):
    """One lock, 95 of 100 times shared, and held for a while."""
    size = bench.sizes.readers
    measurements = [Measurement(bench, "readers", size, contender) for contender in bench.taking_part("readers")]
    for _ in range(bench.sizes.rounds):
        for measurement in measurements:
            measurement.order(
                "run", clients=size, seconds_ms=bench.sizes.round_ms, cycles=5000, shared=95, hold_us=HOLD_US
            )
    for measurement in measurements:
        if measurement.rounds:
            measurement.put_rate(bench.sizes.round_ms / 1000)
            measurement.put_times(analysis.waits(measurement.records, "s"))
            measurement.put(writer_us=analysis.quantile(analysis.waits(measurement.records, "x"), 0.5))
            measurement.put_requests()
        yield measurement.row


def waiters(bench):
    """Many clients wait for one lock, then it goes through all of them."""
    given_up = set()
    for size in bench.sizes.waiters:
        floors = Floors(bench, "waiters", size)
        measurements = [
            Measurement(bench, "waiters", size, contender)
            for contender in bench.taking_part("waiters", size)
            if contender not in given_up
        ]
        few = size < 100
        for _ in range(bench.sizes.rounds_of_waiters if few else 1):
            floors.measure()
            for measurement in measurements:
                measurement.order("queue", clients=size, hold_us=QUEUE_HOLD_US, apart_us=APART_US if few else 0)
        rows = floors.rows()
        for measurement in measurements:
            rows.append(measurement.row)
            if measurement.rounds:
                measurement.put_hand_overs()
                rates = [analysis.passing_rate(records) for records in measurement.rounds]
                measurement.put(rate=statistics.median(rates))
                measurement.put(out_of_order=sum(map(analysis.out_of_order, measurement.rounds)))
                measurement.put_requests()
            else:
                given_up.add(measurement.contender)
        put_ratio(rows, "handover")
        yield from rows


def crowded(bench):
    """A lock that nobody else wants, while very many others are held: on ZooKeeper by one host of dlockfs."""
    contenders = bench.taking_part("crowded")
    held = []
    for holder in [contender for contender in contenders if "holds" in contender.words]:
        measurement = Measurement(bench, "crowded", bench.sizes.held, holder)
        measurement.order("hold", exclusive=False, counted=False, count=bench.sizes.held, limit_s=HOLD_LIMIT_S)
        if not measurement.row.note:
            held.append(holder)
            continue
        yield measurement.row
        server = "zookeeper" in holder.words
        contenders = [other for other in contenders if other is not holder and not (server and "zookeeper" in other.words)]
    yield from alone_rounds(bench, "crowded", contenders, bench.sizes.held)
    for holder in held:
        holder.driver.order("drop", limit_s=HOLD_LIMIT_S)


def savings(bench):
    """Three hosts with four clients each, who try for one lock again and again and give up after a second."""
    measurements = [Measurement(bench, "savings", 12, contender) for contender in bench.taking_part("savings")]
    for measurement in measurements:
        measurement.order(
            "run", clients=12, cycles=bench.sizes.attempts, seconds_ms=60000, wait_ms=1000, hold_us=HOLD_US, limit_s=90
        )
        if not measurement.rounds:
            continue
        records = measurement.records
        measurement.put_rate(60)
        measurement.put_times(analysis.waits(records, "x"))
        measurement.put(refused=sum(record.kind == "t" for record in records))
        measurement.put_requests(attempts=True)
    rows = [measurement.row for measurement in measurements]
    put_saved(rows, "requests", "strict3", "")
    put_saved(rows, "sets", "redis", "-redis")
    yield from rows


def put_saved(rows, column, base, floor):
    """What the rows with that floor need less than the base."""
    most = next((row.values.get(column) for row in rows if row.key == base), None)
    for row in rows:
        if most and row.floor == floor and column in row.values:
            row.values["saved"] = 1 - row.values[column] / most


ALL = {function.__name__: function for function in (alone, many, contended, readers, waiters, savings, crowded)}
