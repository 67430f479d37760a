#!/bin/bash
# How far one ensemble goes, on this machine. First how many writes a second it does, of one server and of three, for clients
# that create and delete ephemeral znodes and do not wait for each. Then what locks that are held or waited for cost it: writes
# a second, all of them heartbeats, and watches, znodes and bytes that the servers keep.
#
#     tests/bench/ensemble.sh [SECONDS [LOCKS...]]      (10, 1 100 1000)
#
# FORCE_SYNC=no: ZooKeeper does not wait for its disk, which leaves the cost of everything else.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

seconds=${1:-10}
shift $(($# > 0))
locks=("${@:-}")
[ -n "${locks[*]}" ] || locks=(1 100 1000)
clients=3
window=100

ninja -C "$build" tests/bench/writes >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")

# count NAME KEY: what the server says of itself.
count() {
    "$python" - "$(zookeeper_address "$1")" "$2" <<'END'
import socket, sys

host, port = sys.argv[1].split(":")
with socket.create_connection((host, int(port)), 5) as connection:
    connection.sendall(b"srvr" if sys.argv[2] == "Zxid:" else b"mntr")
    answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
value = next(line for line in answer.splitlines() if line.split()[0] == sys.argv[2]).split()[1]
print(int(value, 0) & 0xFFFFFFFF)
END
}

# writes SERVER...: the clients' writes a second, spread over these servers.
writes() {
    local number servers=("$@")
    for ((number = 0; number < clients; number++)); do
        start "client$number" "$build/tests/bench/writes" "$(zookeeper_address "${servers[number % $#]}")" "$seconds" "$window"
    done
    for ((number = 0; number < clients; number++)); do
        finish "client$number" $((seconds + 90)) || fail "$(<"$dir/client$number.out")"
    done
    awk '{ sum += $1 } END { print sum }' "$dir"/client?.out
}

# many NAME FOLDER NUMBER: a program with so many locks there, one thread each; says how many it has once it has them all.
many() {
    start "$1" "$python" -c '
import fcntl, os, sys, threading

threading.stack_size(65536)
held = threading.Semaphore(0)

def hold(number):
    fcntl.flock(os.open(f"{sys.argv[1]}/lock{number}", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
    held.release()

for number in range(int(sys.argv[2])):
    threading.Thread(target=hold, args=(number,), daemon=True).start()
for number in range(int(sys.argv[2])):
    held.acquire()
print("held", flush=True)
threading.Event().wait()' "$2" "$3"
}

# waits HOST NUMBER: whether so many calls wait there.
waits() {
    grep -qx "waiters=$2" "$dir/$1/.dlockfs/status"
}

echo "$clients clients, each with $window cycles under way:"
printf '%8s %12s\n' servers writes/s
start_ensemble 3
printf '%8d %12.0f\n' 3 "$(writes zk1 zk2 zk3)"
for number in 1 2 3; do
    stop_zookeeper "zk$number"
done
start_zookeeper
printf '%8d %12.0f\n' 1 "$(writes zk)"

# A heartbeat comes every eighth of the session timeout.
start_dlockfs A --session-timeout 4s
start_dlockfs B --session-timeout 4s
echo "One host that holds locks, another that waits for each; session timeout 4 s:"
printf '%8s %8s %12s %8s %8s %12s\n' held waiting writes/s watches znodes bytes
for number in "${locks[@]}"; do
    for waiting in 0 "$number"; do
        if [ "$waiting" -eq 0 ]; then
            many holder "$dir/A" "$number"
            expect holder held 120
        else
            many waiter "$dir/B" "$number"
        fi
        wait_until 120 waits B "$waiting"
        before=$(count zk Zxid:)
        begin=$(now_ms)
        sleep "$seconds" # the time that is measured
        after=$(count zk Zxid:)
        awk -v held="$number" -v waiting="$waiting" -v writes=$((after - before)) -v ms=$(($(now_ms) - begin)) \
            -v watches="$(count zk zk_watch_count)" -v znodes="$(count zk zk_znode_count)" \
            -v bytes="$(count zk zk_approximate_data_size)" 'BEGIN {
            printf "%8d %8d %12.1f %8d %8d %12d\n", held, waiting, writes * 1000 / ms, watches, znodes, bytes }'
    done
    release waiter holder
    wait_until 120 waits B 0
    wait_until 120 grep -qx holders=0 "$dir/A/.dlockfs/status"
done
