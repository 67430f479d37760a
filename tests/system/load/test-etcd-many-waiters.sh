#!/bin/bash
# 2,000 waiters for one lock on etcd, behind another host: what each costs the servers does not depend on how many there are,
# neither to queue nor to be granted. WAITERS=N for another number of them.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

number=${WAITERS:-2000}
requires test "$(ulimit -Hn)" -ge $((number + 100))
start_etcd
start_dlockfs A --session-timeout 2m
start_dlockfs B --session-timeout 2m
received='grpc_server_msg_received_total{'
sent=etcd_network_client_grpc_sent_bytes_total

# claims_are NUMBER: so many stand in the queue, by the number of keys alone, of which each has two: to list them would be counted.
claims_are() {
    [ "$(etcd get --prefix --keys-only --limit=1 --write-out=fields /dlockfs/job/ | sed -n 's/^"Count" : //p')" = "$((2 * $1))" ]
}

# The daemon's own memory, in bytes.
memory() {
    awk '$1 == "Anonymous:" { print $2 * 1024 }' "/proc/$(pid A)/smaps_rollup"
}

begin() {
    requests=$(etcd_metric "$received") bytes=$(etcd_metric "$sent")
}

# cost WHAT NUMBER: since begin, of each; in hundredths of a request at most 430: one, three to watch a claim that waits when a
# heartbeat is due, and what the sessions need meanwhile.
cost() {
    requests=$((($(etcd_metric "$received") - requests) * 100 / $2))
    bytes=$((($(etcd_metric "$sent") - bytes) / $2))
    echo "$1: $requests/100 requests, $bytes bytes from the server"
    [ "$requests" -le 430 ] || fail "$1: $requests/100 requests"
    [ "$bytes" -le 2000 ] || fail "$1: $bytes bytes from the server"
}

hold holder "$dir/B/job"
expect holder held
comes_free "$dir/A/warm-up"
before=$(memory)
begin
start waiters "$python" -u "$tests/system/load/many_waiters.py" "$dir/A/job" "$number"
wait_until "$deadline" claims_are $((number + 1))
cost "a waiter" "$number"
echo "$((($(memory) - before) / number)) bytes of the daemon for each waiter"
if said waiters "100 granted"; then
    violation "granted beside the holder"
fi
begin
release holder
expect waiters "$number granted"
wait_until "$deadline" claims_are 0
cost "a hand-over" "$number"
release waiters
comes_free "$dir/B/job"
