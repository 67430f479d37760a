#!/bin/bash
# Ten minutes under faults, in six histories beside each other: on ZooKeeper, etcd and Redis, two seeds each, which have all faults
# but a few that dlockfs promises to survive (etc/doc/safety.md). Nothing is wrong in any of them.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires unshare --net --pid --fork true
requires command -v ip
requires type -P strace
requires type -P iptables
requires test -x "$build/tests/system/stepped_clock"
mkdir "$dir/run" "$dir/output"
options=(--promised --faults mix --rounds 13 --seed 2378 --seeds 2 --jobs 2 --session 5 --step 0.1)
DLOCKFS_TEST_DIR=$dir/run OUTPUT=$dir/output "$tests/faults/run.sh" "${options[@]}" \
    dlockfs-zookeeper dlockfs-etcd dlockfs-redis >"$dir/run.out" 2>&1 || fail "$(tail -n 20 "$dir/run.out")"
cat "$dir/run.out"
"$python" "$tests/faults/table.py" --totals "$dir/output"

# What the results say: two held, tokens, the register; the rest may come of a machine that had no time.
"$python" - "$dir/output/results.jsonl" >"$dir/words" <<'END_OF_PROGRAM'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
wrong = {name: sum(row[name] for row in rows) for name in ("double", "late", "never", "back", "register", "lost", "stuck")}
print(len(rows), int(sum(row["under_s"] for row in rows)), *(f"{name}={count}" for name, count in wrong.items() if count))
END_OF_PROGRAM
read -r histories seconds wrong <"$dir/words"
expect_equal "the histories" 6 "$histories"
[ "$seconds" -ge 500 ] || fail "only $seconds s were under faults"
case $wrong in
    "") ;;
    lost=* | stuck=*) fail "$wrong" ;;
    *) violation "$wrong" ;;
esac
