# SPDX-License-Identifier: Apache-2.0
"""What records (driver.py) tell."""


def quantile(values, fraction):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * fraction))] if values else None


def granted(records):
    """In the order of the grants; where the clock does not tell, in the only one that excludes."""
    return sorted((record for record in records if record.kind != "t"), key=lambda record: record[3:5])


def cycle_times(records):
    return [record.released - record.asked for record in granted(records)]


def waits(records, kind):
    return [record.granted - record.asked for record in records if record.kind == kind]


def overlaps(records):
    """How often a lock was granted while somebody held it that conflicts with it."""
    count = 0
    exclusive_until = any_until = 0
    for record in granted(records):
        count += record.granted < (exclusive_until if record.kind == "s" else any_until)
        any_until = max(any_until, record.releasing)
        if record.kind == "x":
            exclusive_until = max(exclusive_until, record.releasing)
    return count


def hand_overs(records, hosts=1):
    """From the call that releases to the end of the call of the next one, where that one was waiting already. Where there
    are several hosts, which the clients take turns with: only those from one to another."""
    order = granted(records)
    return [
        after.granted - before.releasing
        for before, after in zip(order, order[1:])
        if after.asked < before.releasing and (hosts == 1 or before.client % hosts != after.client % hosts)
    ]


def rate(records, seconds):
    """Locks granted a second, within that time after the first who asked."""
    begin = min(record.asked for record in records)
    end = begin + int(seconds * 1e6)
    inside = [record.granted for record in granted(records) if record.granted <= end]
    return len(inside) / (max(inside) - begin) * 1e6 if inside else 0.0


def passing_rate(records):
    """Locks granted a second, from the first to the last."""
    order = granted(records)
    return (len(order) - 1) / max(order[-1].granted - order[0].granted, 1) * 1e6


def overtaken(records):
    """The share of grants before which another client was granted twice or more, while this one had asked. In the order
    of asking there are none, but for who was interrupted between asking for the time and asking for the lock."""
    order = granted(records)
    count = 0
    times = {}
    for record in order:
        for client, grants in times.items():
            if client != record.client and len(grants) > 1 and grants[-2] > record.asked:
                count += 1
                break
        times.setdefault(record.client, []).append(record.granted)
    return count / len(order) if order else 0.0


def out_of_order(records):
    """How many were granted before somebody who had asked earlier."""
    order = granted(records)
    count = 0
    earliest = float("inf")
    for record in reversed(order):
        count += record.asked > earliest
        earliest = min(earliest, record.asked)
    return count
