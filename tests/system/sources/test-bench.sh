#!/bin/bash
# The benchmark of locks works: each contender is measured, one that cannot be had is named with the reason, and a
# lock that is not exclusive, or not in order, would be noticed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

PYTHONPATH=$tests/bench "$python" - <<'END'
import analysis
from driver import Record


def records(*times):
    """Each: kind, asked, granted, releasing; a client of its own."""
    return [Record(number, kind, *moments, moments[-1] + 1) for number, (kind, *moments) in enumerate(times)]


def expect(what, found, expected):
    assert found == expected, f"{what}: {found} instead of {expected}"


well = records(("x", 0, 1, 9), ("s", 2, 12, 20), ("s", 3, 13, 18), ("x", 4, 25, 30), ("t", 5, 7, 7))
expect("overlaps of what is exclusive", analysis.overlaps(well), 0)
expect("in order", analysis.out_of_order(well), 0)
expect("overlap of two writers", analysis.overlaps(records(("x", 0, 1, 9), ("x", 0, 8, 12))), 1)
expect("overlap of a reader", analysis.overlaps(records(("x", 0, 1, 9), ("s", 0, 2, 3))), 1)
expect("overlap of a writer", analysis.overlaps(records(("s", 0, 1, 9), ("s", 0, 2, 3), ("x", 0, 8, 12))), 1)
expect("out of order", analysis.out_of_order(records(("x", 5, 6, 7), ("x", 1, 8, 9), ("x", 9, 10, 11))), 1)
expect("hand-overs", analysis.hand_overs(records(("x", 0, 1, 9), ("x", 2, 12, 13), ("x", 14, 15, 16))), [3])
turns = records(("x", 0, 1, 9), ("x", 2, 12, 13), ("x", 3, 20, 21), ("x", 4, 25, 26))
expect("hand-overs between two hosts", analysis.hand_overs(turns, 2), [3, 7, 4])
turns = [turn._replace(client=turn.client // 2) for turn in turns]
expect("hand-overs between two hosts, of two clients", analysis.hand_overs(turns, 2), [7])
greedy = [Record(0, "x", time, time, time, time) for time in range(10, 20)] + [Record(1, "x", 5, 30, 31, 32)]
expect("overtaken", analysis.overtaken(greedy), 1 / 11)
expect("locks a second", round(analysis.rate(greedy, 25e-6)), 440000)
END

# The benchmark has a folder of its own, and its processes are found here if it fails to end them.
mkdir "$dir/run" "$dir/output"
ln -s ../pids "$dir/run/pids"
export DLOCKFS_TEST_DIR=$dir/run OUTPUT=$dir/output QUICK=1
export CONTENDERS="raw udp strict strict3 peers3 handoff keep recipe-c kazoo fuse-floor tmpfs"
refused "$tests/bench/run.sh" sideways >"$dir/refused.out" 2>&1
mkdir "$dir/run"
ln -s ../pids "$dir/run/pids"
"$tests/bench/run.sh" alone contended waiters >"$dir/bench.out" 2>&1 || fail "$(tail -n 20 "$dir/bench.out")"

# measured WORKLOAD SIZE KEY...: these have rows with a median and without a note.
measured() {
    local workload=$1 size=$2 key
    shift 2
    for key; do
        awk -F, -v begin="$workload,$size,$key," 'index($0, begin) == 1 && $6 != "" && $NF ~ /^\r?$/ { found = 1 }
            END { exit !found }' "$dir/output/bench.csv" || fail "no measurement: $workload,$size,$key"
    done
}

measured alone 1 raw strict handoff keep kazoo fuse-floor tmpfs
measured contended 8 read write handover oneway strict strict3 peers3 handoff keep kazoo
measured waiters 10 read write handover oneway strict strict3 peers3 handoff keep kazoo tmpfs
grep -q '^alone,1,recipe-c,.*,missing: no Debian package has it' "$dir/output/bench.csv" || fail "not named as missing"
grep -q '^reach ' "$dir/bench.out" || fail "nothing about the reach"

# The other measurements say what they are for, and do not begin with what is no number.
for script in ranges listing ensemble waiters names users; do
    env -u DLOCKFS_TEST_DIR timeout 20 "$tests/bench/$script.sh" --help >"$dir/help"
    grep -q "^    tests/bench/$script.sh \[" "$dir/help" || fail "$script.sh --help: $(<"$dir/help")"
    expect_status 1 env -u DLOCKFS_TEST_DIR timeout 20 "$tests/bench/$script.sh" 10 many >"$dir/help" 2>"$dir/wrong"
    grep -q '^failed: expected a number, found many' "$dir/wrong" || fail "$script.sh 10 many: $(<"$dir/wrong")"
done
