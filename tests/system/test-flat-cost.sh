#!/bin/bash
# What an acquisition costs the server does not depend on how many wait for the lock, and is as little as it can be: by
# the server's own count of requests, watches and events.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 10m
start_dlockfs B --session-timeout 10m
start_dlockfs C --session-timeout 10m
flock -n "$dir/A/warm-up" true
flock -n "$dir/B/warm-up" true
flock -n "$dir/C/warm-up" true
wait_claims warm-up 0
PYTHONPATH=$tests/bench timeout 60 "$python" "$tests/system/flat_cost.py" "$(zookeeper_address)" "$dir/A" "$dir/B" "$dir/C" \
    >"$dir/flat.out" 2>&1 || fail "$(tail -n 3 "$dir/flat.out")"
expect_equal "cost" flat "$(<"$dir/flat.out")"
