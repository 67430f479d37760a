#!/bin/bash
# 16 processes on two hosts increment a number in a plain file 2,000 times under a lock taken by exclusive open, and no
# update is lost; the znode of the lock is removed by the server whenever it is idle for a moment.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

zookeeper_options=(-Dznode.container.checkIntervalMs=50)
start_zookeeper
start_dlockfs A
start_dlockfs B
echo 0 >"$dir/counter"
"$python" "$tests/system/counter.py" open "$dir/counter" 16 2000 "$dir/A/job" "$dir/B/job"
expect_equal "counter" 2000 "$(<"$dir/counter")"
wait_claims job 0
