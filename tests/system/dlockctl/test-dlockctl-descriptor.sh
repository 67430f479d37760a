#!/bin/bash
# dlockctl token and check, on descriptors that a shell script has opened.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A

exec 9>"$dir/A/job"
expect_status 1 "$dlockctl" check 9 2>"$dir/err"
expect_equal error "dlockctl: descriptor 9: nothing is locked through it; lock it first" "$(<"$dir/err")"
expect_status 1 "$dlockctl" token 9 2>"$dir/err"
flock 9
"$dlockctl" check 9
first=$("$dlockctl" token 9)
expect_equal "the same grant" "$first" "$("$dlockctl" token 9)"
expect_equal JSON "$first" "$("$dlockctl" token --json 9 | jq -r .token)"
flock -u 9
expect_status 1 "$dlockctl" check 9 2>"$dir/err"
flock -s 9
second=$("$dlockctl" token 9)
[ "$second" -gt "$first" ] || violation "token $second after $first"

# Somebody deletes the claim: noticed by asking.
zookeeper delete /dlockfs/job
expect_status 75 "$dlockctl" check 9 2>"$dir/err"
exec 9>&-

# What is no such descriptor.
expect_status 64 "$dlockctl" check 9 2>"$dir/err"
grep -q 'descriptor 9: is not open' "$dir/err"
expect_status 64 "$dlockctl" token nine 2>"$dir/err"
grep -q 'nine: is no descriptor' "$dir/err"
expect_status 64 "$dlockctl" token 2>"$dir/err"
expect_status 64 "$dlockctl" check 1 2 2>"$dir/err"
expect_status 65 "$dlockctl" check 9 9>"$dir/file" 2>"$dir/err"
grep -q 'descriptor 9: is no file of dlockfs' "$dir/err"
