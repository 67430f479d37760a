#!/bin/bash
# What an acquisition costs the server does not depend on how many wait for the lock, and is as little as it can be: by
# the server's own count of requests, watches and events.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
mounts=()
for host in A B C D E F; do
    start_dlockfs "$host" --session-timeout 10m
    comes_free "$dir/$host/warm-up"
    mounts+=("$dir/$host")
done
wait_claims warm-up 0
PYTHONPATH=$tests/bench timeout 250 "$python" "$tests/system/load/flat_cost.py" "$(zookeeper_address)" "${mounts[@]}" \
    >"$dir/flat.out" 2>&1 || fail "$(tail -n 3 "$dir/flat.out")"
expect_equal "cost" flat "$(<"$dir/flat.out")"
