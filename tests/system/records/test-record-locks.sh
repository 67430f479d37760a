#!/bin/bash
# Record locks of several processes on one host follow the same rules as the kernel's own: the same random calls, one after the
# other, have the same results on a tmpfs, with the embedded store and with ZooKeeper.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

mkdir "$dir/tmpfs"
mount -t tmpfs tmpfs "$dir/tmpfs"
start_dlockfs L
start_zookeeper
start_dlockfs A

# same SEED CALLS HOST...
same() {
    local seed=$1 calls=$2 host
    shift 2
    for host in tmpfs "$@"; do
        timeout 300 "$python" "$tests/system/records/record_calls.py" "$dir/$host" "$seed" "$calls" >"$dir/$host.out" ||
            fail "seed $seed on $host"
        if ! cmp -s "$dir/tmpfs.out" "$dir/$host.out"; then
            diff -U 5 "$dir/tmpfs.out" "$dir/$host.out" | sed -n 1,20p >&2
            fail "seed $seed: $host differs from tmpfs"
        fi
    done
    [ "$(wc -l <"$dir/tmpfs.out")" -gt $((calls / 2)) ] || fail "seed $seed: hardly any calls"
}

for seed in 1 2 3 4 5; do
    same "$seed" 3000 L
done
for seed in 6 7; do
    same "$seed" 1500 A
done
for file in file0 file1; do
    wait_claims "$file" 0
done
