#!/bin/bash
# 16 processes on two hosts increment a number in a plain file 2,000 times under a lock taken by flock, and 16 others another one
# under a lock taken by exclusive open, and no update is lost; the znode of the lock is removed by the server whenever it is idle
# for a moment.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

zookeeper_options=(-Dznode.container.checkIntervalMs=50)
start_zookeeper
start_dlockfs A
start_dlockfs B
for kind in flock open; do
    echo 0 >"$dir/$kind"
    "$python" "$tests/lib/counter.py" "$kind" "$dir/$kind" 16 2000 "$dir/A/job-$kind" "$dir/B/job-$kind"
    expect_equal "violation: counter under $kind" 2000 "$(<"$dir/$kind")"
    wait_claims "job-$kind" 0
done
