#!/bin/bash
# The leader of etcd is stopped, and another one leads. When it goes on it answers keep-alives before it hears of that, and is then
# sent a snapshot, as the others' logs begin later than its own ends. Hosts prove their leases by it and are cut off: nobody else has
# their locks before they are fenced.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

hosts_count=5
session=120000 # milliseconds; an eighth is 15 s

# put_keys NAME MEMBER: 1,840 of them.
put_keys() {
    start "$1" "$python" -c '
import http.client, sys, threading
def run():
    connection = http.client.HTTPConnection(sys.argv[1])
    for _ in range(115):
        connection.request("POST", "/v3/kv/put", "{\"key\": \"Zm9v\", \"value\": \"YmFy\"}")
        connection.getresponse().read()
threads = [threading.Thread(target=run) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()' "$(etcd_address "$2")"
}

# hold NAME FILE GO: takes the lock, and calls fsync once when GO exists; from then on as lease.py hold FILE write.
hold() {
    start "$1" "$python" -uc '
import errno, fcntl, os, sys, time
def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000000
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
fcntl.flock(fd, fcntl.LOCK_EX)
print("granted", now())
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
last = 0
try:
    os.fsync(fd)
    print("proven", now())
    while True:
        begin = now()
        os.pwrite(fd, b"mine", 0)
        last = begin
        time.sleep(0.01)
except OSError as error:
    print("fenced", errno.errorcode[error.errno], last, now())
time.sleep(1000)' "$2" "$3"
}

at() {
    local wait=$(($1 - $(lease now)))
    [ "$wait" -le 0 ] || sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
}

another_leads() {
    [ "$({ etcd_status etcd2 && etcd_status etcd3; } | grep -c ' true,')" -eq 1 ] && etcd_serves etcd2
}

etcd_options=(--snapshot-count 100 --log-level info)
start_linked_etcds 3
start_proxy near etcd1
start_dlockfs B --session-timeout 240s --store "etcd://$(etcd_address etcd2),$(etcd_address etcd3)/dlockfs"
etcd_move_leader etcd1
begin=$(lease now) # keep-alives come 15 s, 30 s, ... later
for ((i = 1; i <= hosts_count; i++)); do
    start_dlockfs "A$i" --session-timeout "${session}ms" --store "$(proxied near)"
done
at $((begin + 20000)) # and heartbeats 35 s later
for ((i = 1; i <= hosts_count; i++)); do
    hold "holder-$i" "$dir/A$i/job-$i" "$dir/go"
done
for ((i = 1; i <= hosts_count; i++)); do
    wait_until "$deadline" granted "holder-$i"
    keep "rival-$i" "$dir/B/job-$i" flock
done
sleep 0.3
pause etcd1
wait_until "$deadline" another_leads
for member in 2 3; do
    put_keys "load-$member" "etcd$member"
done
put_keys load-1 etcd2
for load in 1 2 3; do
    finish "load-$load"
done
cut_link etcd1
at $((begin + 32500))
resume etcd1
sleep 0.3
join_link etcd1
wait_until "$deadline" grep -q '"applied snapshot"' "$dir/etcd1.log"
touch "$dir/go"
sleep 0.5
cut_link near
held_twice=0
for ((i = 1; i <= hosts_count; i++)); do
    wait_until 220 granted "rival-$i" # 0.15 of its own session timeout later
    wait_until 220 fenced "holder-$i"
    grant=$(time_of "rival-$i" granted)
    last=$(awk '$1 == "fenced" { print $3; exit }' "$dir/holder-$i.out")
    if [ "$last" -ge "$grant" ]; then
        held_twice=$((held_twice + 1))
        echo "lock $i was held twice for $((last - grant)) ms"
    fi
done
[ "$held_twice" -eq 0 ] || violation "$held_twice locks were held twice"
