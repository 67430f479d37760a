#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py CONTENDERS HOST:PORT FOLDER WORKLOAD...: runs workloads (all, if none is named), prints tables and writes
bench.csv and bench.svg to the folder. Called by run.sh. Ends with 1 if a lock was not exclusive."""

import os
import shutil
import sys

import contenders
import plot
import report
import workloads


def main():
    file, address, folder, *names = sys.argv[1:]
    sizes = workloads.QUICK if os.environ.get("QUICK") else workloads.Sizes()
    bench = workloads.Bench(contenders.load(file), address, sizes)
    rows = []
    try:
        for name in names or workloads.ALL:
            found = list(workloads.ALL[name](bench))
            report.print_tables(found)
            rows += found
    finally:
        for contender in bench.contenders:
            contender.driver.close()
    report.print_summary(rows)
    report.Reach(rows).print()
    report.write_csv(rows, f"{folder}/bench.csv")
    print(f"\n{folder}/bench.csv")
    if not shutil.which("gnuplot"):
        print("no plot: gnuplot is missing")
    elif plot.draw(rows, f"{folder}/bench.svg"):
        print(f"{folder}/bench.svg")
    return int(any(row.note.startswith("NOT EXCLUSIVE") for row in rows))


sys.exit(main())
