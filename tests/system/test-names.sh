#!/bin/bash
# Names of any bytes: spaces, percent signs, newlines, invalid UTF-8, 255 bytes, dots, ZooKeeper's own words. The same name
# excludes on both hosts; names that look alike do not exclude each other.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
"$python" "$tests/system/names.py" "$dir/A" "$dir/B"
# With the lock's znodes directly below the server's root, where "zookeeper" is taken.
stop_dlockfs A
stop_dlockfs B
start_dlockfs A --store "zookeeper://$(zookeeper_address)/"
start_dlockfs B --store "zookeeper://$(zookeeper_address)/"
"$python" "$tests/system/names.py" "$dir/A" "$dir/B"
# 256 bytes are too many for any file system.
expect_status 66 flock -n "$dir/A/$(printf '%0256d' 0)" true

# What is missing above a lock deep down is made in few rounds: not one for each level, with all levels in it.
deep=$dir/A$(printf '/d%.0s' {1..300})
mkdir -p "$deep"
before=$(zookeeper_received)
flock "$deep/job" true
requests=$(($(zookeeper_received) - before))
[ "$requests" -lt 1500 ] || fail "$requests requests for a lock below 300 directories"
