# SPDX-License-Identifier: Apache-2.0
"""Draws the most telling workloads with gnuplot, as SVG."""

import subprocess


def quoted(text):
    return '"' + text.replace('"', "'") + '"'


def bars(title, rows, column, logarithmic):
    """Returns commands that draw a horizontal line of its length for each row."""
    rows = [row for row in rows if row.values.get(column)][::-1]
    if not rows:
        return []
    block = ["$bars << END", *(f"{number} {row.values[column]} {quoted(row.label)}" for number, row in enumerate(rows)), "END"]
    return [
        "reset",
        "set style fill solid 0.8",
        *block,
        f"set title {quoted(title)}",
        "set logscale x" if logarithmic else "set xrange [0:*]",
        f"set yrange [-0.6:{len(rows) - 0.4}]",
        "set grid x",
        "least = " + ("0.5" if logarithmic else "0"),
        "plot $bars using (least):1:(least):2:($1-0.35):($1+0.35):ytic(3) with boxxyerror notitle",
    ]


def lines(title, rows, column, unit):
    """Returns commands that draw a line over the sizes for each contender."""
    rows = [row for row in rows if row.values.get(column)]
    keys = dict.fromkeys(row.key for row in rows)
    if not rows:
        return []
    sizes = sorted({row.size for row in rows})
    commands = [
        "reset", f"set title {quoted(title)}", "set logscale xy", "set grid", "set key outside right top",
        f"set ylabel {quoted(unit)}", f"set xrange [{min(sizes) / 1.3}:{max(sizes) * 1.3}]", "set xtics (" + ", ".join(map(str, sizes)) + ")",
    ]
    plots = []
    for number, key in enumerate(keys):
        own = [row for row in rows if row.key == key]
        commands += [f"$line{number} << END", *(f"{row.size} {row.values[column]}" for row in own), "END"]
        plots.append(f"$line{number} using 1:2 with linespoints linewidth 2 dashtype {number // 8 + 1} title {quoted(own[0].label)}")
    return commands + ["plot " + ", ".join(plots)]


def draw(rows, file):
    """Returns whether there was anything to draw."""

    def of(workload):
        return [row for row in rows if row.workload == workload]

    panels = [
        bars("one client: microseconds of taking and releasing a lock", of("alone"), "median_us", True),
        lines("one lock, N clients: microseconds of a hand-over", of("contended"), "median_us", "microseconds"),
        lines("one lock, N clients: locks a second", of("contended"), "rate", "locks a second"),
        bars("three hosts, one lock: requests to ZooKeeper for an attempt", of("savings"), "requests", False),
    ]
    panels = [panel for panel in panels if panel]
    if not panels:
        return False
    commands = [
        f"set terminal svg size 1000,{420 * len(panels)} font 'sans,12' background 'white'",
        f"set output {quoted(file)}",
        f"set multiplot layout {len(panels)},1",
        *(command for panel in panels for command in panel),
        "unset multiplot",
    ]
    subprocess.run(["gnuplot"], input="\n".join(commands) + "\n", text=True, check=True)
    return True
