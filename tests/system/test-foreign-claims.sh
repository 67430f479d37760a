#!/bin/bash
# Claims of other clients of ZooKeeper (Curator's lock and read-write lock, kazoo, C and Go recipes) stand in the same queue: theirs are
# waited for, shared ones shared; what is no claim is ignored.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
start_dlockfs A
address=$(zookeeper_address)

uuid=00000000-1111-2222-3333-444444444444
# foreign NAME PREFIX: a client that keeps a claim with that name.
foreign() {
    start "$1" "$python" -u "$tests/system/zookeeper.py" "$address" hold /dlockfs/job "$2"
    wait_until "$deadline" test -s "$dir/$1.out"
}

number=0
for prefix in "_c_$uuid-__WRIT__" "_c_$uuid-lock-" "_c_$uuid-__LOCK__" "${uuid//-/}__lock__" "${uuid//-/}__wlock__" lock- \
    x-123456789-; do
    number=$((number + 1))
    foreign "foreign$number" "$prefix"
    expect_status 1 flock -n "$dir/A/job" true
    expect_status 1 flock -n -s "$dir/A/job" true
    hold waiter "$dir/A/job"
    wait_claims job 2
    if said waiter held; then
        fail "held beside $prefix"
    fi
    release "foreign$number"
    # It was killed: the server takes its claim away when its session ends, or now.
    zookeeper delete "/dlockfs/job/$(<"$dir/foreign$number.out")" 2>"$dir/delete.err" || true
    expect waiter held
    release waiter
    wait_claims job 0
done

for prefix in "_c_$uuid-__READ__" "${uuid//-/}__rlock__" read-; do
    number=$((number + 1))
    foreign "foreign$number" "$prefix"
    flock -n -s "$dir/A/job" true
    expect_status 1 flock -n "$dir/A/job" true
    zookeeper delete "/dlockfs/job/$(<"$dir/foreign$number.out")"
    flock -n "$dir/A/job" true
done

# Children that are no claims.
zookeeper make /dlockfs/job/leases
zookeeper make /dlockfs/job/lock-12
zookeeper make /dlockfs/job/0123456789x
flock -n "$dir/A/job" true
zookeeper delete /dlockfs/job

# kazoo's own recipe waits for a lock of the mount, and the mount for kazoo's.
cat >"$dir/client.py" <<'END'
import sys
import kazoo.client
client = kazoo.client.KazooClient(sys.argv[1])
client.start()
with client.Lock("/dlockfs/job", "kazoo", extra_lock_patterns=("-__WRIT__", "-__READ__")):
    print("held", flush=True)
    sys.stdin.readline()
END
hold holder "$dir/A/job"
expect holder held
mkfifo "$dir/fifo"
"$python" "$dir/client.py" "$address" <"$dir/fifo" >"$dir/kazoo.out" &
process_record "$dir" kazoo $!
exec 5>"$dir/fifo"
wait_claims job 2
if said kazoo held; then
    fail "kazoo holds beside the mount"
fi
release holder
expect kazoo held
expect_status 1 flock -n "$dir/A/job" true
hold waiter "$dir/A/job"
wait_claims job 2
echo >&5
expect waiter held
