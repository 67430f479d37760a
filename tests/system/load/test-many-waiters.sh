#!/bin/bash
# 10,000 waiters for one lock, behind another host: their host is connected anew, and they keep their places, are granted one
# after the other, and leave the queue when they are killed. Each takes less than 1 KiB of the daemon's memory. WAITERS=N for another
# number of them.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

number=${WAITERS:-10000}
requires test "$(ulimit -Hn)" -ge $((number + 100))
requires test "$(cat /proc/sys/kernel/pid_max)" -ge $((number + 5000))
start_zookeeper
start_proxy link

# The daemon's own memory, in bytes.
memory() {
    awk '$1 == "Anonymous:" { print $2 * 1024 }' "/proc/$(pid A)/smaps_rollup"
}

# The servers take their time for a queue of this length, and the machine for as many threads. From the next heartbeat on, an eighth of
# the timeout later, waiters are watched, and take more: that comes after the measurement, also on a busy machine.
start_dlockfs A --session-timeout 8m --store "$(proxied link)"
start_dlockfs B --session-timeout 8m
hold holder "$dir/B/job"
expect holder held
flock "$dir/A/warm-up" true
before=$(memory)
start waiters "$python" -u "$tests/system/load/many_waiters.py" "$dir/A/job" "$number"
wait_claims job $((number + 1))
each=$((($(memory) - before) / number))
echo "$each bytes for each waiter"
# Of fewer the daemon's buffers would count for more than they do.
[ "$number" -lt 10000 ] || [ "$each" -lt 1100 ] || fail "$each bytes for each waiter"

status() {
    sed -n "s/^$1=//p" "$dir/A/.dlockfs/status"
}

is_status() {
    [ "$(status "$1")" = "$2" ]
}

for round in 1 2 3; do
    touch "$dir/link/refuse"
    wait_until "$deadline" is_status session suspended
    rm "$dir/link/refuse"
    wait_until "$deadline" is_status session connected
    expect_equal "waiters after reconnect $round" "$number" "$(status waiters)"
done
comes_free "$dir/A/other"
if said waiters "100 granted"; then
    violation "granted beside the holder"
fi
release holder
expect waiters "500 granted"
release waiters
wait_claims job 0
comes_free "$dir/B/job"
if grep 'giving it up\|expired\|lock lost' "$dir"/[AB].log; then
    fail "a session was lost"
fi
