#!/bin/bash
# A waiter costs the daemon no thread. A daemon that has nothing to do uses no CPU time and wakes up only for a sync each
# sixth of the session timeout, in place of the client library's pings; one that holds, or waits, only does for its heartbeats
# and for seven syncs between them. On the embedded store it does not wake up at all.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

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

wake_ups() { # of the thread that does everything but ZooKeeper's
    sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$(pid A)/task/$(pid A)/status"
}

# quiet [SECONDS]: whether it does not wake up for so long.
quiet() {
    local before
    before=$(wake_ups)
    sleep "${1:-0.1}"
    [ "$(wake_ups)" = "$before" ]
}

# idle WHAT WAKE-UPS: takes 3 seconds, in which the daemon may wake up so often, after what came before is answered.
idle() {
    local ticks wakes
    wait_until "$deadline" quiet
    ticks=$(cpu_ticks)
    wakes=$(wake_ups)
    sleep 3
    ticks=$(($(cpu_ticks) - ticks))
    wakes=$(($(wake_ups) - wakes))
    [ "$ticks" -le 2 ] || fail "$1: $ticks ticks of CPU in 3 s"
    [ "$wakes" -le "$2" ] || fail "$1: $wakes wake-ups in 3 s"
}

wait_claims job 0
wait_until "$deadline" quiet 1 # syncs are as many as among heartbeats for a while
idle "with nothing to do" 6    # to send two, and for the answers, which may come in parts
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
# With the next heartbeat the claims that wait are watched.
watches() {
    # shellcheck disable=SC2016
    timeout "$deadline" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && echo mntr >&3 && sed -n "s/^zk_watch_count\t//p" <&3' - \
        "$(<"$dir/zk/port")"
}
all_watched() {
    [ "$(watches)" -ge 100 ]
}
wait_until "$deadline" all_watched
# To send 13 heartbeats and syncs, the first of those with a watch, and for the answers, which come by themselves, or in parts.
idle "with 100 waiters" 45
release holder
for number in {1..50}; do
    finish "flock$number"
done
finish open
wait_claims job 0
expect_equal "threads after 100 waiters" "$before" "$(threads)"

# Without its server, and on the embedded store.
wait_until "$deadline" quiet # a request without an answer has a limit of its own
pause zk
# After use, syncs are as many as among heartbeats for a while.
idle "with a server that does not answer" 20
resume zk
flock "$dir/A/job" true
stop_dlockfs A
store=local:
start_dlockfs A
flock -n "$dir/A/job" true
idle "on the embedded store" 0
