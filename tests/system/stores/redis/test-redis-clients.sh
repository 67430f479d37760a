#!/bin/bash
# Locks of the mount and of programs that lock keys of one Redis server exclude each other on one key, both ways round, contended, and
# when either is killed: SET NX PX and a compare-and-delete by redis-cli, and redis-py's Lock, whose key may have no end. A lock of
# Redisson, of whose scripts there is a model here, excludes the mount; Redisson fails where the mount has the lock.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=redis-clients.sh
. "$tests/system/stores/redis/redis-clients.sh"
# shellcheck source=redis-excludes.sh
. "$tests/system/stores/redis/redis-excludes.sh"

requires "$python" -c 'import redis'
start_redis
servers=("$(redis_address)")
for host in A B; do
    start_dlockfs "$host" --session-timeout 5s
done
for kind in cli:60 lock:60 lock; do
    excludes "$kind"
done
for kind in cli:1 lock:1; do
    killed_client "$kind"
done
killed_host lock:60
count_with cli:60 lock:60 lock

# A dead client of `timeout=None` blocks everybody, until somebody takes the key away by hand.
client_hold dead lock dlockfs/for-ever
expect dead held
release dead
hold blocked "$dir/A/for-ever"
wait_until "$deadline" asleep blocked
expect_equal "the end of its key" -1 "$(redis PTTL dlockfs/for-ever)"
refused flock -n "$dir/B/for-ever" true
redis DEL dlockfs/for-ever >/dev/null
expect blocked held
release blocked

# Redisson (the model): a hash of who holds it, and how often (RedissonLock, tryLockInnerAsync and unlockInnerAsync).
# shellcheck disable=SC2016 # for Redis
redisson_take() {
    redis EVAL 'if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
        redis.call("hincrby", KEYS[1], ARGV[2], 1) redis.call("pexpire", KEYS[1], ARGV[1]) return "held" end
        return redis.call("pttl", KEYS[1])' 1 dlockfs/redisson 60000 f9d2:1 2>&1
}
redisson_release() {
    redis EVAL 'if redis.call("hincrby", KEYS[1], ARGV[1], -1) == 0 then redis.call("del", KEYS[1]) end' 1 dlockfs/redisson f9d2:1 >/dev/null
}
expect_equal "Redisson" held "$(redisson_take)"
refused flock -n "$dir/A/redisson" true
hold behind "$dir/B/redisson"
waits behind
redisson_release
expect behind held
redisson_take | grep -q WRONGTYPE || violation "Redisson does not fail beside the mount"
release behind
wait_until "$deadline" eval '[ "$(redisson_take)" = held ]'
redisson_release
