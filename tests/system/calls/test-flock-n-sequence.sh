#!/bin/bash
# A lock that was just released is free for the very next call on the host: flock -n f true, 1,000 times in a row.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
for ((number = 1; number <= 1000; number++)); do
    flock -n "$dir/A/job" true || fail "refused at cycle $number"
done
wait_claims job 0

# The same with a lock for reading in between, with exclusive open, and on the embedded store.
store=local:
start_dlockfs L
for host in A L; do
    for ((number = 1; number <= 50; number++)); do
        flock -n "$dir/$host/job" true || fail "$host: refused at cycle $number"
        flock -n -s "$dir/$host/job" true || fail "$host: shared refused at cycle $number"
    done
    steps=()
    for ((number = 1; number <= 200; number++)); do
        steps+=(excl-nb close open ex-nb close)
    done
    call cycles "$dir/$host/job" "${steps[@]}"
    finish cycles
    expect_equal "$host: refused" 0 "$(grep -cv ' ok$' "$dir/cycles.out" || true)"
done
