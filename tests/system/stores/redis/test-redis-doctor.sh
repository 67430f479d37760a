#!/bin/bash
# dlockctl doctor warns of what endangers locks in how a Redis server is set up: it keeps no log, removes keys when it is full, has
# replicas that need not have a lock; of an even number of servers; and of nothing where all is well.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

# warnings HOST: of the store.
warnings() {
    "$dlockctl" --mount "$dir/$1" doctor | sed -n 's/^warning: store: //p'
}

# warns HOST WORDS
warns() {
    warnings "$1" | finds -F -- "$2"
}

start_redis
start_dlockfs A
expect_equal "warnings" "" "$(warnings A)"
kill_redis

redis_durable=no
redis_start forgetful --maxmemory 100mb --maxmemory-policy allkeys-lru
store=redis://$(redis_address forgetful)/dlockfs
start_dlockfs B
warns B "$(redis_address forgetful) keeps no log (AOF)" || fail "not said: $(warnings B)"
warns B "set maxmemory-policy noeviction" || fail "not said: $(warnings B)"
grep -q '^store_warning=' "$dir/B/.dlockfs/status" || fail "not in the status"

# shellcheck disable=SC2034 # for redis.sh
redis_durable=yes
start_redis_replicas 1
start_dlockfs C
warns C "$(redis_address) has replicas" || fail "not said: $(warnings C)"
printf '%s\n' '[store]' 'redis_replicas = 1' >"$dir/config.ini"
start_dlockfs E --config "$dir/config.ini"
flock "$dir/E/job" true
expect_equal "warnings" "" "$(warnings E)"

start_redises 2
start_dlockfs D
warns D "name an odd number" || fail "not said: $(warnings D)"
