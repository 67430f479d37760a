#!/bin/bash
# What an acquisition costs the server does not depend on how many wait for the lock, and is as little as it can be: by
# the server's own count of requests, watches and events.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v jq
start_zookeeper
mounts=()
for host in A B C D E F; do
    start_dlockfs "$host" --session-timeout 10m
    mounts+=("$dir/$host")
done
# All hosts have written their entries, and asked how many there are.
all_hosts() {
    [ "$("$dlockctl" --mount "$dir/A" hosts --json | jq '.stores[0].hosts | length')" = ${#mounts[@]} ]
}
wait_until "$deadline" all_hosts
for mount in "${mounts[@]}"; do
    comes_free "$mount/warm-up"
done
wait_claims warm-up 0
PYTHONPATH=$tests/bench timeout 250 "$python" "$tests/system/load/flat_cost.py" "$(zookeeper_address)" "${mounts[@]}" \
    >"$dir/flat.out" 2>&1 || fail "$(tail -n 3 "$dir/flat.out")"
expect_equal "cost" flat "$(<"$dir/flat.out")"
