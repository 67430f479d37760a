#!/bin/bash
# A daemon that is killed before its guard's program was loaded: the guard sees that it has come too late, and tells who held.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

preload=$build/tests/system/late_start.so
requires test -e "$preload"
cleanup_fn touch "$dir/begin" # or the guard would wait for ever
start_zookeeper
LD_PRELOAD=$preload TEST_LATE=dlockfs-notifier TEST_LATE_UNTIL=$dir/begin \
    start_dlockfs A --session-timeout 10s -o on_lost=SIGUSR1
call holder "$dir/A/job" catch=SIGUSR1 open ex hold
expect holder "ex ok"
expect_equal "guards" "" "$(guards_of A)"
kill -KILL "$(pid A)" # and nothing that it has started
finish A 2>/dev/null || true
forget_host A
sleep 1
if grep '^caught' "$dir/holder.out"; then
    fail "somebody else has told it"
fi
go begin
wait_until "$deadline" grep -q '^caught SIGUSR1 ' "$dir/holder.out"
wait_until "$deadline" refused stat "$dir/A/job" 2>/dev/null
release holder
