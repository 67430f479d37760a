#!/bin/bash
# What the comparison of tests/faults rests on: that its checker finds what is wrong in a history, each kind by itself, and nothing where nothing is.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

"$python" "$tests/faults/test_check.py" >"$dir/found.out" 2>&1 || fail "$(tail -n 20 "$dir/found.out")"
cat "$dir/found.out"

# A history that was not made by it: two processes, of which one writes while the other holds.
cat >"$dir/history" <<'END_OF_HISTORY'
{"time": 1, "process": "A1", "type": "invoke", "f": "acquire", "lock": "one"}
{"time": 2, "process": "A1", "type": "ok", "f": "acquire", "lock": "one", "token": 1}
{"time": 3, "process": "B1", "type": "invoke", "f": "acquire", "lock": "one"}
{"time": 4, "process": "B1", "type": "ok", "f": "acquire", "lock": "one", "token": 2}
{"time": 5, "process": "A1", "type": "invoke", "f": "write", "lock": "one", "token": 1, "value": 7}
{"time": 6, "process": "A1", "type": "fail", "f": "write", "lock": "one", "token": 1, "value": 7, "at": 5}
{"time": 7, "process": "A1", "type": "info", "f": "told", "lock": "one"}
{"time": 8, "process": "nemesis", "type": "info", "f": "over"}
END_OF_HISTORY
expect_status 0 "$python" "$tests/faults/check.py" "$dir/history" >"$dir/words"
grep -q '^double: one: A1 wrote' "$dir/words"
grep -q 'double=1 longest_s=0.000 double_refused=1 late=1' "$dir/words"
expect_status 1 "$python" "$tests/faults/check.py" --strict "$dir/history" >/dev/null
sed -i '$d' "$dir/history"
expect_status 1 "$python" "$tests/faults/check.py" "$dir/history" 2>"$dir/words"
grep -qx 'broken: the history has no end' "$dir/words"
