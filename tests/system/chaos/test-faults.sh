#!/bin/bash
# The comparison of tests/faults works: dlockfs loses a server to it, which gives a history, a line of results, and a table.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires unshare --net --pid --fork true
requires command -v ip
requires type -P redis-server
mkdir "$dir/output"
# run OPTION...
run() {
    mkdir "$dir/run"
    DLOCKFS_TEST_DIR=$dir/run OUTPUT=$dir/output "$tests/faults/run.sh" --faults leader-kill --rounds 1 "$@" dlockfs-redis >"$dir/run.out" 2>&1
    cat "$dir/run.out"
}
run
"$python" - "$dir/output/results.jsonl" <<'END_OF_PROGRAM'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [row["fault"] for row in rows] == ["leader-kill"], rows
for row in rows:
    assert row["faults"] == 1 and row["acquired"] > 6 and row["writes"] > 6 and not row["register"], row
END_OF_PROGRAM

# Another look at the history says the same.
"$python" "$tests/faults/check.py" --grace 6 --patience 14 "$dir/output/dlockfs-redis.leader-kill.1.jsonl" >"$dir/words"
grep -q ' writes=[1-9][0-9]* .* faults=1 ' "$dir/words"
"$python" "$tests/faults/table.py" "$dir/output" >"$dir/table"
grep -q '^| dlockfs, Redis | ' "$dir/table"

"$python" "$tests/faults/table.py" --totals "$dir/output" >"$dir/table"
grep -q '^| dlockfs, Redis | 1 | ' "$dir/table"

# What the results have already is not done again.
run --continue --jobs 1
expect_equal "what was done again" "" "$(<"$dir/run.out")"
expect_equal "the results" 1 "$(wc -l <"$dir/output/results.jsonl")"

# A seed is a plan.
plan() {
    "$python" "$tests/faults/nemesis.py" plan mix "$1" 12
}
expect_equal "the plan of a seed" "$(plan 7)" "$(plan 7)"
[ "$(plan 7)" != "$(plan 8)" ] || fail "two seeds have the same plan"
