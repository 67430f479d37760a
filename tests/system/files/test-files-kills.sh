#!/bin/bash
# Directories as locks (style = file), contended on two hosts, whose daemons are killed and go on, again and again: no two programs
# have the lock at a time, none loses it, and no call fails.
#
# From the environment: STORE, zookeeper (unless given) or etcd; KILLS, how many.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
files_config files
for host in A B; do
    start_kept "$host" --config "$dir/files.ini" --session-timeout 30s
done

echo 0 >"$dir/counter"
counted_more() {
    [ "$(<"$dir/counter")" -gt "$1" ] 2>/dev/null
}
start count "$python" -u "$tests/system/files/mkdir_counter.py" "$dir/counter" 3 "$dir/stop" "$dir/A/files" "$dir/B/files"
for ((kill = 0; kill < ${KILLS:-24}; kill++)); do
    before=$(<"$dir/counter")
    wait_until 30 counted_more "$((${before:-0} + 20))"
    host=A
    [ $((kill % 2)) -eq 0 ] || host=B
    if [ $((kill % 6)) -lt 4 ]; then
        crash "$host"
    else
        restart_kept "$host"
    fi
done
touch "$dir/stop"
finish count
expect_equal "what the programs count" "$(<"$dir/counter")" "$(<"$dir/count.out")"
says_at A "" ls -A
says_at B "" ls -A
stop_kept A
stop_kept B
