#!/bin/bash
# A daemon is stopped between its look at the clock and the moment at which its guard learns that somebody holds, until another host
# has been granted the lock: its caller is told EIO, and never of the grant. Without a journal, and with one.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

preload=$build/tests/system/stopped_wake.so
requires test -e "$preload"
start_zookeeper
start_dlockfs B --session-timeout 2m
export STOPPED_WAKE=$dir/wake
printf 0 >"$STOPPED_WAKE"
chmod 666 "$STOPPED_WAKE"

put() { printf %s "$1" | dd of="$STOPPED_WAKE" conv=notrunc status=none; }
stands() { [ "$(cat "$STOPPED_WAKE")" = 2 ]; }
cleanup_fn put 0 # or the daemon would never end

for start in start_dlockfs start_kept; do
    LD_PRELOAD=$preload "$start" "A_$start" --session-timeout 4s
    wait_until "$deadline" grep -q 'connected to ZooKeeper' "$dir/A_$start.log"
    put 1 # its guard is woken for the first lock
    call "holder_$start" "$dir/A_$start/job" open ex hold
    wait_until "$deadline" stands
    pause "A_$start"
    keep "rival_$start" "$dir/B/job" flock
    wait_until "$deadline" granted "rival_$start"
    put 0
    resume "A_$start"
    expect "holder_$start" "ex EIO"
    release "holder_$start" "rival_$start"
done
