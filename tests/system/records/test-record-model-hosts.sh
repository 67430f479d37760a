#!/bin/bash
# The sequences of calls of test-record-model.sh by processes on two hosts: they have the outcomes that a model says
# and that processes have on one tmpfs. Those for which two hosts or the queue differ from Linux are made on the hosts
# only. At the end nothing is left in any queue. SEED and COUNT make others, and one again that failed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=record_model.sh
. "$tests/system/records/record_model.sh"

start_zookeeper
# Who is killed while it waits is to leave the queue at once: other hosts are told of it by F_GETLK.
start_dlockfs A -o linger=0ms
start_dlockfs B -o linger=0ms
JOBS=3 play agreed 400 agreed "$dir/tmpfs+$dir/tmpfs" "$dir/A+$dir/B"
JOBS=2 play queue 200 queue "$dir/A+$dir/B"
played agreed
played queue
nothing_left() {
    [ -z "$(find "$dir/A/.dlockfs/locks" -type f)" ]
}
wait_until "$deadline" nothing_left
