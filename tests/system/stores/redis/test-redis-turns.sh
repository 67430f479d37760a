#!/bin/bash
# A host asks Redis for a lock once for all of its callers: who waits costs no more than one, who releases and asks again is kept from
# the lock by nobody, and yet a host whose callers never stop lets other hosts and other clients have their turn. With keep, a lock that
# is taken again costs no request, until the turn is over. Slots are refused.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=redis-clients.sh
. "$tests/system/stores/redis/redis-clients.sh"

requires "$python" -c 'import redis'
start_redis
servers=("$(redis_address)")
printf '%s\n' '[store]' 'turn_time = 15s' '[locks "kept"]' 'keep = 1h' '[locks "several"]' 'slots = 2' >"$dir/config"
for host in A B; do
    start_dlockfs "$host" --session-timeout 60s --config "$dir/config"
done

# What is no queue of all hosts does not let several hold.
call several "$dir/A/several" open ex-nb ex excl-nb
finish several
expect_equal "slots" "open ok,ex-nb ENOLCK,ex ENOLCK,excl-nb ENOLCK" "$(paste -sd, <"$dir/several.out")"
grep -q 'several: its store has not got slots: refused with ENOLCK' "$dir/A.log" || fail "not told"

# Twenty who wait ask no more often than one: at most once each 15 ms (retry_delay).
client_hold holder lock:60 dlockfs/job
expect holder held
for ((i = 0; i < 20; i++)); do
    waiters+=("waiter$i")
    hold "waiter$i" "$dir/A/job"
done
for name in "${waiters[@]}"; do
    wait_until "$deadline" asleep "$name"
done
begin=$(now_ms)
before=$(redis_calls set)
read -r -t 1 -u "$nothing" || true # a time to count in
asked=$(($(redis_calls set) - before))
elapsed=$(($(now_ms) - begin))
[ "$asked" -le $((elapsed / 15 + 2)) ] || fail "$asked tries in $elapsed ms"
tries() {
    [ "$(redis_calls set)" -gt "$before" ]
}
wait_until "$deadline" tries

# They have it one after the other, by one key as long as the turn lasts.
holds() { # by one of the waiters
    local name
    for name in "${waiters[@]}"; do
        ! said "$name" held || { first=$name; return; }
    done
    return 1
}
client_release holder
before=$(redis_calls set)
for ((i = 0; i < 20; i++)); do
    wait_until "$deadline" holds
    release "$first"
    left=()
    for name in "${waiters[@]}"; do
        [ "$name" = "$first" ] || left+=("$name")
    done
    waiters=("${left[@]}")
done
asked=$(($(redis_calls set) - before))
[ "$asked" -lt 20 ] || fail "20 callers of one host took the key by $asked requests"

# Callers of A never stop. B has its turn all the same, and a client that tries each 100 ms.
# shellcheck disable=SC2016 # for the shell that is started
hammer='until [ -e "$1" ]; do flock "$0" true; done'
for ((i = 0; i < 4; i++)); do
    start "hammer$i" bash -c "$hammer" "$dir/A/busy" "$dir/enough"
done
for ((i = 0; i < 3; i++)); do
    timeout "$deadline" flock "$dir/B/busy" true
    echo 0 >"$dir/number"
    timeout "$deadline" "$python" "$tests/system/stores/redis/redis_lock.py" count lock:60 dlockfs/busy "$dir/number" 1 "${servers[@]}"
done
go enough
for ((i = 0; i < 4; i++)); do
    finish "hammer$i"
done

# What is kept costs nothing, and is not kept from others for ever.
flock "$dir/A/kept" true
before=$(redis_calls set)
call again "$dir/A/kept" open ex-nb un ex-nb un ex-nb un ex-nb un
finish again
expect_equal "refused" 0 "$(grep -c 'EWOULDBLOCK\|EAGAIN' "$dir/again.out" || true)"
expect_equal "requests for what is kept" "$before" "$(redis_calls set)"
timeout "$deadline" flock "$dir/B/kept" true
