#!/bin/bash
# A waiter costs the daemon no thread, and a daemon that has nothing to do, or only waits, uses no CPU time.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
start_dlockfs A
flock -n "$dir/A/job" true

threads() {
    find "/proc/$(pid A)/task" -mindepth 1 -maxdepth 1 | wc -l
}

cpu_ticks() { # user and system time
    local stat
    stat=$(<"/proc/$(pid A)/stat")
    stat=${stat##*) }
    # shellcheck disable=SC2086
    set -- $stat
    echo $((${12} + ${13}))
}

# idle WHAT: takes 3 seconds.
idle() {
    local before after
    before=$(cpu_ticks)
    sleep 3
    after=$(cpu_ticks)
    [ $((after - before)) -le 2 ] || fail "$1: $((after - before)) ticks of CPU in 3 s"
}

idle "with nothing to do"
before=$(threads)
hold holder "$dir/A/job"
expect holder held
for number in {1..50}; do
    start "flock$number" flock "$dir/A/job" true
done
start open "$python" -c '
import os, sys
for number in range(50):
    if os.fork() == 0:
        os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os._exit(0)
for number in range(50):
    os.wait()
' "$dir/A/job"
wait_claims job 101
expect_equal "threads with 100 waiters" "$before" "$(threads)"
idle "with 100 waiters"
release holder
for number in {1..50}; do
    finish "flock$number"
done
finish open
wait_claims job 0
expect_equal "threads after 100 waiters" "$before" "$(threads)"

# Without its server, and on the embedded store.
pause zk
idle "with a server that does not answer"
resume zk
flock "$dir/A/job" true
stop_dlockfs A
store=local:
start_dlockfs A
flock -n "$dir/A/job" true
idle "on the embedded store"
