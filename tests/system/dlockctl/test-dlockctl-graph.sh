#!/bin/bash
# dlockctl graph: who waits for whom, on two hosts: a cycle of two locks, readers and a writer, byte ranges; as a tree, for Graphviz, and
# as JSON.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires command -v jq

start_zookeeper
start_dlockfs A
start_dlockfs B
host=$(hostname)

graph() {
    "$dlockctl" --mount "$dir/A" graph "$@"
}

# tree_is LINE...: ages aside.
tree_is() {
    [ "$(graph | sed 's/, for [0-9a-z]*//')" = "$(printf '%s\n' "$@")" ]
}

tree_is "nobody waits" || fail "$(graph)"

# As flock(2) has it, nobody is told of a deadlock.
call first "$dir/A/x" open ex file="$dir/A/y" await="$dir/both" open ex hold
expect first "ex ok"
call second "$dir/B/y" open ex file="$dir/B/x" await="$dir/both" open ex hold
expect second "ex ok"
go both
wait_claims x 2
wait_claims y 2
first="$host:$(pid first) python3" second="$host:$(pid second) python3"
wait_until "$deadline" tree_is "$second" "\`- $first  [y, exclusive]" "   \`- $second  [x, exclusive]: a cycle"
release first second
wait_claims x 0
wait_claims y 0

# A writer waits for two readers; who reads behind it waits for it.
mkdir "$dir/A/cron" "$dir/B/cron"
hold reader1 -s "$dir/A/cron/\"job\""
expect reader1 held
hold reader2 -s "$dir/B/cron/\"job\""
expect reader2 held
hold writer "$dir/B/cron/\"job\""
wait_claims 'cron/"job"' 3
hold reader3 -s "$dir/A/cron/\"job\""
wait_claims 'cron/"job"' 4
for name in reader1 reader2 writer reader3; do
    declare "$name=$host:$(pid "$name") flock"
done
# shellcheck disable=SC2154
wait_until "$deadline" tree_is "$reader1" "\`- $writer  [cron/\"job\", exclusive]" \
    "   \`- $reader3  [cron/\"job\", shared, behind it in the queue]" "$reader2" "\`- $writer  [cron/\"job\", exclusive]: as above"
graph --dot >"$dir/dot"
diff -u - "$dir/dot" <<END
digraph locks {
	rankdir=LR;
	n0 [label="$writer"];
	n1 [label="$reader1"];
	n2 [label="$reader2"];
	n3 [label="$reader3"];
	n3 -> n0 [label="cron/\\"job\\"", style=dashed];
	n0 -> n1 [label="cron/\\"job\\""];
	n0 -> n2 [label="cron/\\"job\\""];
}
END
graph --json >"$dir/json"
expect_equal "JSON, nodes" "$writer,$reader1,$reader2,$reader3" "$(jq -r '.nodes | join(",")' "$dir/json")"
expect_equal "JSON, edges" '[[3,0,"shared","waiting"],[0,1,"exclusive","held"],[0,2,"exclusive","held"]]' \
    "$(jq -c '[.edges[] | [.from, .to, .mode, .blocker]]' "$dir/json")"
expect_equal "JSON, lock" 'cron/"job"' "$(jq -r '.edges[0].lock' "$dir/json")"
release reader1 reader2 writer reader3

# Only who has bytes that another one wants is in its way.
call low "$dir/A/range" open w:0-9 hold
expect low "w:0-9 ok"
call high "$dir/B/range" open w:20-29 hold
expect high "w:20-29 ok"
call wants "$dir/B/range" open w:25-30 hold
wait_until "$deadline" tree_is "$host:$(pid high) python3" "\`- $host:$(pid wants) python3  [range, exclusive]"
expect_status 64 graph range 2>"$dir/err"
