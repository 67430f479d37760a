#!/bin/bash
# Processes that hold record locks on both sides of a range, and take it in turn, do not starve one that holds nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host"
done
timeout 120 "$python" "$tests/system/records/record_fairness.py" "$dir/A" "$dir/B" "$dir/C" || fail "starved"
wait_claims fair 0
