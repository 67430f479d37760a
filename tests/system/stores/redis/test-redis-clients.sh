#!/bin/bash
# Locks of the mount and of programs that lock keys of one Redis server exclude each other on one key, both ways round, contended, and
# when either is killed: SET NX PX and a compare-and-delete by redis-cli, redis-py's Lock, whose key may have no end, and, where
# recipe = redisson, a model of Redisson's locks.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=redis-clients.sh
. "$tests/system/stores/redis/redis-clients.sh"
# shellcheck source=redis-excludes.sh
. "$tests/system/stores/redis/redis-excludes.sh"

requires "$python" -c 'import redis'
start_redis
servers=("$(redis_address)")
printf '%s\n' '[locks "*-redisson*"]' 'recipe = redisson' >"$dir/config.ini"
# shellcheck disable=SC2034 # for redis-excludes.sh
host_options=(--config "$dir/config.ini")
for host in A B; do
    start_dlockfs "$host" --session-timeout 5s "${host_options[@]}"
done
for kind in cli:60 lock:60 lock; do
    excludes "$kind"
done
for kind in cli:1 lock:1; do
    killed_client "$kind"
done
killed_host lock:60
count_with cli:60 lock:60 lock

# says_blocked COMMAND...: of dlockctl.
says_blocked() {
    "$dlockctl" --mount "$dir/A" "$@" | finds -F "$blocks"
}

# A dead client of `timeout=None` blocks everybody, until somebody takes the key away by hand.
client_hold dead lock dlockfs/for-ever
expect dead held
release dead
hold blocked "$dir/A/for-ever"
wait_until "$deadline" asleep blocked
expect_equal "the end of its key" -1 "$(redis PTTL dlockfs/for-ever)"
blocks="dlockfs/for-ever has no end and is not ours: it blocks for-ever until it is deleted"
wait_until "$deadline" says_blocked doctor
says_blocked show for-ever || fail "show does not say: $blocks"
refused flock -n "$dir/B/for-ever" true
redis DEL dlockfs/for-ever >/dev/null
expect blocked held
! says_blocked doctor || fail "doctor warns of a lock that is free"
release blocked

# Where recipe = redisson, the mount and Redisson exclude each other by one hash; its read-write lock has the same.
excludes redisson:60
killed_client redisson:1
killed_host redisson:60
count_with redisson:60 redisson:60

# listened CHANNEL TIMES
listened() {
    [ "$(redis PUBSUB NUMSUB "$1" | tail -n 1)" -ge "$2" ]
}

# some_holds NAME...: one of them holds, and goes on; sets first.
some_holds() {
    for first; do
        ! alive "$first" || ! said "$first" held || return 0
    done
    return 1
}

# renewed KEY: its end was moved since left_ms was noted last.
renewed() {
    local before=$left_ms
    left_ms=$(redis PTTL "$1")
    [ "$left_ms" -gt "$before" ]
}

# wakes CHANNEL KIND...: a release of the mount wakes those who wait there, by the channel; else they would sleep until the key had
# ended. What is held for longer than the key lives is renewed.
wakes() {
    local lock=wakes-$2 channel=$1 kind field
    shift
    hold holder -s "$dir/A/$lock"
    expect holder held
    flock -n -s "$dir/A/$lock" true
    for kind; do
        client_hold "$kind" "$kind:60" "dlockfs/$lock"
    done
    wait_until "$deadline" listened "$channel:{dlockfs/$lock}" $#
    field=$(redis HKEYS "dlockfs/$lock")
    left_ms=$(redis PTTL "dlockfs/$lock")
    wait_until "$deadline" renewed "dlockfs/$lock"
    expect_equal "what the key has" "$field" "$(redis HKEYS "dlockfs/$lock")"
    for kind; do
        ! said "$kind" held || violation "$kind holds beside the mount"
    done
    release holder
    # Who comes first is chance.
    for kind; do
        wait_until "$deadline" some_holds "$@"
        expect "$first" woken
        refused flock -n -s "$dir/B/$lock" true
        client_release "$first"
    done
}
wakes redisson_lock__channel redisson
wakes redisson_rwlock redisson-write redisson-read

# What was asked of the server is counted.
for operation in place prove withdraw; do
    grep "^dlockfs_store_operation_seconds_count{operation=\"$operation\"} [1-9]" "$dir/A/.dlockfs/metrics" >/dev/null ||
        fail "not counted: $operation"
done

# A key of the other type is never touched. The log names the recipe.
client_hold other redisson:60 dlockfs/plain-set
expect other held
refused flock -n "$dir/A/plain-set" true
finds -F "set recipe = redisson" <"$dir/A.log" || violation "the log does not name the recipe"
client_release other
comes_free "$dir/A/plain-set"
client_hold other lock:60 dlockfs/set-redisson
expect other held
hold behind "$dir/A/set-redisson"
waits behind
finds -F "leave recipe out" <"$dir/A.log" || violation "the log does not name the recipe"
client_release other
expect behind held
refused client_try lock:60 dlockfs/set-redisson
release behind
