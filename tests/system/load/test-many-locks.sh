#!/bin/bash
# Many locks that one host holds and another one waits for: a lost connection loses none of them, neither those that are released while
# there is none nor those that are released afterwards. LOCKS=20000 for more than a client of ZooKeeper can bring along in one packet
# (test-many-watches.sh does that with a store alone): LIMIT=600 LOCKS=20000 tests/run.sh many-locks.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

number=${LOCKS:-400}
half=$((number / 2))
deadline=$((deadline + number / 50))
requires test "$(ulimit -Hn)" -ge $((half + 100))
requires test "$(cat /proc/sys/kernel/pid_max)" -ge $((number + 5000))
start_zookeeper
start_proxy link
start_dlockfs A --session-timeout 1m
start_dlockfs B --session-timeout 1m --store "$(proxied link)"
declare -A from=([early]=0 [late]=$half)
for part in early late; do
    start $part "$python" -u "$tests/lib/many_locks.py" hold "$dir/A" "${from[$part]}" $((from[$part] + half))
    expect $part held
    start wait-$part "$python" -u "$tests/lib/many_locks.py" wait "$dir/B" "${from[$part]}" $((from[$part] + half))
done

# server VALUE NUMBER: whether the server counts so many.
server() {
    PYTHONPATH=$tests/bench "$python" -c '
import sys, server
sys.exit(server.metrics(sys.argv[1])[sys.argv[2]] != sys.argv[3])' "$(zookeeper_address)" "$1" "$2"
}
is_status() {
    grep -qx "$1=$2" "$dir/B/.dlockfs/status"
}
# With the entries of the two hosts.
wait_until "$deadline" server zk_ephemerals_count $((4 * half + 2))
touch "$dir/link/refuse"
wait_until "$deadline" is_status session suspended
expect_equal "who waits" "waiters=$((2 * half))" "$(grep '^waiters=' "$dir/B/.dlockfs/status")"
release early
wait_until "$deadline" server zk_ephemerals_count $((3 * half + 2))
rm "$dir/link/refuse"
finish wait-early
expect_equal "who waits" "waiters=$half" "$(grep '^waiters=' "$dir/B/.dlockfs/status")"
release late
finish wait-late
if grep 'expired\|lock lost' "$dir"/[AB].log; then
    fail "a session was lost"
fi
