#!/bin/bash
# redis-lock.sh PORT KEY MILLISECONDS: a script that locks as many do, with redis-cli: SET NX PX, and a script that compares and
# deletes. Says "held" when it has the lock; SIGTERM has it release that, and say "released", or "lost" if it was another's by then.

port=$1 key=$2 lifetime_ms=$3
value=$$-$RANDOM-$RANDOM
release="if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

ask() {
    redis-cli -h 127.0.0.1 -p "$port" "$@"
}

until [ "$(ask SET "$key" "$value" NX PX "$lifetime_ms")" = OK ]; do
    sleep 0.05
done
ended=
trap 'ended=yes' TERM
echo held
while [ -z "$ended" ]; do
    sleep 0.05
done
[ "$(ask EVAL "$release" 1 "$key" "$value")" = 1 ] && echo released || echo lost
