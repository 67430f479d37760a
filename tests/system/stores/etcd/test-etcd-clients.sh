#!/bin/bash
# Locks of the mount and of etcd's other clients exclude each other on one name, both ways round, contended, and when either is killed:
# etcdctl lock, which is Mutex of clientv3/concurrency; the lock service, by its gateway, as jetcd takes it; and RWMutex of
# contrib/recipes (rwmutex.go and key.go), of whose protocol there is a model here, by etcdctl.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
requires command -v jq
requires command -v curl

start_etcd
start_dlockfs A --session-timeout 5s
start_dlockfs B --session-timeout 5s

# service METHOD REQUEST: the answer of the gateway; fails with what is no answer.
service() {
    curl -sS --fail --max-time "$deadline" "http://$(etcd_address)/v3/$1" -d "$2"
}

text64() {
    printf %s "$1" | base64 -w 0
}

# service_lock LOCK LEASE: prints the key, in base64. Waits.
service_lock() {
    service lock/lock "{\"name\": \"$(text64 "/dlockfs/$1")\", \"lease\": \"$2\"}" | jq -er .key
}

service_unlock() {
    service lock/unlock "{\"key\": \"$1\"}" >/dev/null
}

# service_lease SECONDS: there is a lease; in decimal.
service_lease() {
    service lease/grant "{\"TTL\": \"$1\"}" | jq -er .ID
}

# rw_take LOCK read|write LEASE: RWMutex, which puts a key of its own, and waits for what was changed before that: a reader for
# the last writer, a writer for the last of all. Prints the key.
rw_take() {
    local key answer revision before
    key=/dlockfs/$1/$2/$(date +%s%N)
    answer=$(etcd put --write-out=json --lease="$3" "$key" "")
    revision=$(jq -r .header.revision <<<"$answer")
    before=/dlockfs/$1/
    [ "$2" = write ] || before+="write"
    while etcd get --prefix --write-out=json "$before" | jq -e "[.kvs[]? | select(.mod_revision < $revision)] | length > 0" >/dev/null; do
        sleep 0.02
    done
    echo "$key"
}

rw_lease() {
    etcd lease grant "$1" | awk '{ print $2 }'
}

# rw_hold NAME LOCK read|write: says "held", and goes on until it is killed; then its lease ends.
rw_hold() {
    local lease
    lease=$(rw_lease 3)
    rw_holds "$1" "$2" "$3" "$lease" &
    process_record "$dir" "$1" $!
}

rw_holds() {
    trap - EXIT ERR
    exec >"$dir/$1.out" 2>&1 </dev/null
    etcdctl lease keep-alive "$4" >"$dir/$1.keeper" &
    echo $! >"$dir/$1.keeper-pid"
    rw_take "$2" "$3" "$4" >/dev/null
    echo held
    wait
}

# rw_kill NAME: it and its keeper.
rw_kill() {
    kill -KILL "$(<"$dir/$1.keeper-pid")" || true
    send_signal "$1" KILL
    finish "$1" 2>/dev/null || true
}

# hold_etcdctl NAME LOCK
hold_etcdctl() {
    start "$1" etcdctl lock --ttl=3 "/dlockfs/$2" -- sh -c 'echo held; exec sleep infinity'
}

# not_yet NAME: it waits, and does not hold.
not_yet() {
    ! said "$1" held || violation "$1 holds beside another one"
}

# etcdctl lock holds, the mount waits behind it, and etcdctl behind that; each is killed.
hold_etcdctl first mutex
expect first held
expect_status 1 flock -n "$dir/A/mutex" true
expect_status 1 flock -n -s "$dir/B/mutex" true
hold second "$dir/A/mutex"
wait_claims mutex 2
hold_etcdctl third mutex
wait_claims mutex 3
hold fourth "$dir/B/mutex"
wait_claims mutex 4
"$dlockctl" --mount "$dir/B" show mutex >"$dir/show"
expect_equal "shown" "held waiting waiting waiting" "$(awk '$1 ~ /^[1-4]$/ { print $2 }' "$dir/show" | paste -sd' ')"
expect_equal "of others" 2 "$(grep -c ' another client ' "$dir/show")"
release first
expect second held
not_yet third
release second
expect third held
not_yet fourth
release third
expect fourth held
hold_etcdctl fifth mutex
wait_claims mutex 2
not_yet fifth
kill_dlockfs B
expect fifth held
release fifth fourth
umount -l "$dir/B"
start_dlockfs B --session-timeout 5s
comes_free "$dir/B/mutex"
# A shared claim of the mount is waited for, too.
hold reader -s "$dir/A/mutex"
expect reader held
hold_etcdctl sixth mutex
wait_claims mutex 2
not_yet sixth
release reader
expect sixth held
release sixth
comes_free "$dir/A/mutex"

# The lock service.
lease=$(service_lease 60)
key=$(service_lock served "$lease")
expect_status 1 flock -n "$dir/A/served" true
hold waits "$dir/A/served"
wait_claims served 2
not_yet waits
service_unlock "$key"
expect waits held
service_lock served "$lease" >"$dir/served-key" &
asking=$!
wait_claims served 2
[ ! -s "$dir/served-key" ] || violation "the lock service holds beside the mount"
release waits
wait "$asking"
expect_status 1 flock -n "$dir/B/served" true
service lease/revoke "{\"ID\": \"$lease\"}" >/dev/null
comes_free "$dir/B/served"

# RWMutex (the model).
rw_hold rw-reader rw read
expect rw-reader held
flock -n -s "$dir/A/rw" true
expect_status 1 flock -n "$dir/A/rw" true
hold writer "$dir/B/rw"
wait_claims rw 2
rw_hold rw-late rw read
wait_claims rw 3
not_yet rw-late
rw_kill rw-reader
expect writer held
not_yet rw-late
release writer
expect rw-late held
rw_hold rw-writer rw write
wait_claims rw 2
hold reader -s "$dir/A/rw"
wait_claims rw 3
not_yet rw-writer
rw_kill rw-late
expect rw-writer held
not_yet reader
rw_kill rw-writer
expect reader held
rw_hold rw-second rw read
expect rw-second held
release reader
rw_kill rw-second
comes_free "$dir/A/rw"

# Contended: all of them increment one number.
counted=$dir/number
echo 0 >"$counted"
increment() {
    local number
    number=$(<"$counted")
    sleep 0.002
    echo $((number + 1)) >"$counted"
}
count_service() {
    local lease key i
    lease=$(service_lease 120)
    for ((i = 0; i < 20; i++)); do
        key=$(service_lock number "$lease")
        increment
        service_unlock "$key"
    done
}
count_rw() {
    local lease key i
    lease=$(rw_lease 120)
    for ((i = 0; i < 10; i++)); do
        key=$(rw_take number write "$lease")
        increment
        etcd del "$key" >/dev/null
    done
}
count_etcdctl() {
    local i
    for ((i = 0; i < 20; i++)); do
        # shellcheck disable=SC2016 # for the shell that is started
        etcdctl lock /dlockfs/number -- sh -c 'n=$(cat "$0"); sleep 0.002; echo $((n + 1)) >"$0"' "$counted"
    done
}
children=()
for counter in count_service count_rw count_etcdctl; do
    "$counter" >"$dir/$counter.out" 2>&1 &
    children+=($!)
done
"$python" "$tests/lib/counter.py" flock "$counted" 4 100 "$dir/A/number" "$dir/B/number"
for child in "${children[@]}"; do
    wait "$child" || violation "a counter failed: $(tail -n 2 "$dir"/count_*.out)"
done
expect_equal "violation: increments" 150 "$(<"$counted")"
wait_claims number 0
