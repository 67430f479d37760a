#!/bin/bash
# 200 waiters on one name, on two hosts, are released in their order; they cost the daemon no threads.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
for host in A B; do
    flock "$dir/$host/warm-up" true
done

threads() {
    find "/proc/$(pid "$1")/task" -mindepth 1 -maxdepth 1 | wc -l
}

threads_a=$(threads A)
threads_b=$(threads B)
start queue "$python" -u "$tests/system/load/waiters.py" "$(zookeeper_address)" /dlockfs/job 200 "$dir/go" "$dir/A/job" "$dir/B/job"
expect queue "200 wait"
expect_equal "threads of A with waiters" "$threads_a" "$(threads A)"
expect_equal "threads of B with waiters" "$threads_b" "$(threads B)"
soon flock -n "$dir/A/other" true
soon ls "$dir/A" >"$dir/ls.out"
go go
finish queue
said queue "in order" || fail "$(tail -n 3 "$dir/queue.out")"
wait_claims job 0
