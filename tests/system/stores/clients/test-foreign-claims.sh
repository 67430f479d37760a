#!/bin/bash
# Claims of other clients of ZooKeeper (Curator's lock and read-write lock, kazoo, C and Go recipes) stand in the same queue: theirs are
# waited for, shared ones shared; what is no claim is ignored.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_zookeeper
start_dlockfs A
address=$(zookeeper_address)

uuid=00000000-1111-2222-3333-444444444444
# foreign NAME PREFIX: a client that keeps a claim with that name.
foreign() {
    start "$1" "$python" -u "$tests/lib/zookeeper.py" "$address" hold /dlockfs/job "$2"
    wait_until "$deadline" test -s "$dir/$1.out"
}

number=0
for prefix in "_c_$uuid-__WRIT__" "_c_$uuid-lock-" "_c_$uuid-__LOCK__" "${uuid//-/}__lock__" "${uuid//-/}__wlock__" lock- \
    x-123456789- web1-W-; do
    number=$((number + 1))
    foreign "foreign$number" "$prefix"
    expect_status 1 flock -n "$dir/A/job" true
    expect_status 1 flock -n -s "$dir/A/job" true
    hold waiter "$dir/A/job"
    wait_claims job 2
    if said waiter held; then
        violation "held beside $prefix"
    fi
    release "foreign$number"
    # It was killed: the server takes its claim away when its session ends, or now.
    zookeeper delete "/dlockfs/job/$(<"$dir/foreign$number.out")" 2>"$dir/delete.err" || true
    expect waiter held
    release waiter
    wait_claims job 0
done

for prefix in "_c_$uuid-__READ__" "${uuid//-/}__rlock__" read- web-1.example.org-R-; do
    number=$((number + 1))
    foreign "foreign$number" "$prefix"
    flock -n -s "$dir/A/job" true
    expect_status 1 flock -n "$dir/A/job" true
    zookeeper delete "/dlockfs/job/$(<"$dir/foreign$number.out")"
    flock -n "$dir/A/job" true
done

# Claims of record locks keep others out of what they say. Where that makes no sense, they keep them out of the whole
# span in their name, and if that makes none, out of the whole file.
span() { # NAME DATA EXPECTED: what locking of the bytes 3, 5 and 50 comes to beside such a claim
    number=$((number + 1))
    start "foreign$number" "$python" -u "$tests/lib/zookeeper.py" "$address" hold /dlockfs/job "$1__WRIT__" "$2"
    wait_until "$deadline" test -s "$dir/foreign$number.out"
    call try "$dir/A/job" open w-nb:3-3 w-nb:5-5 w-nb:50-50
    finish try
    expect_equal "beside $1 with '$2'" "$3" "$(sed 1d "$dir/try.out" | cut -d' ' -f2 | paste -sd' ')"
    zookeeper delete "/dlockfs/job/$(<"$dir/foreign$number.out")"
    release "foreign$number"
    flock -n "$dir/A/job" true
}
record=_c_01234567-89ab-8def-b123-000100000001
span "$record-s0-9-" $'format=1\nranges=w5-5\n' "ok EAGAIN ok"
span "$record-r0-9-" $'format=1\nranges=r5-5,w6-9\nwaits=0\nnew=1\n' "ok EAGAIN ok"
span "$record-s0-9-" $'format=1\nranges=w3-99\n' "EAGAIN EAGAIN ok"
for data in "" $'\xff\xfe\n' $'format=2\nranges=w5-5\n' $'format=1\nranges=w5-5' $'format=1\nranges=w5-5,w2-2\n' \
    $'format=1\nranges=\n' $'format=1\nwaits=99999999999999999999\n'; do
    span "$record-s0-9-" "$data" "EAGAIN EAGAIN ok"
done
for part in r9-0 r0- r-5-9 r00-9 s0-99999999999999999999 r0-9-a99999999999999999999:0-9 r0-9-x; do
    span "$record-$part-" $'format=1\nranges=w5-5\n' "EAGAIN EAGAIN EAGAIN"
done
span "_c_01234567-89ab-4def-b123-000100000001-r0-9-" $'format=1\nranges=w5-5\n' "EAGAIN EAGAIN EAGAIN"

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
    violation "kazoo holds beside the mount"
fi
release holder
expect kazoo held
expect_status 1 flock -n "$dir/A/job" true
hold waiter "$dir/A/job"
wait_claims job 2
echo >&5
expect waiter held
