# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Programs without dlockfs that lock keys of Redis: redis-py and a Redlock client (redis_lock.py), and scripts with redis-cli.
# Sourced after functions.sh.
#
# A kind is `cli:SECONDS`, for the last of these, or one of redis_lock.py. `lock` has no end; of the others the key ends after so
# long. The servers are those of $servers.

compare_and_delete="if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
servers=()

# cli COMMAND ARGUMENT...: redis-cli with the first server.
cli() {
    redis-cli -h 127.0.0.1 -p "${servers[0]##*:}" "$@"
}

# client_lock VERB KIND KEY ARGUMENT...
client_lock() {
    "$python" -u "$tests/system/stores/redis/redis_lock.py" "$@" "${servers[@]}"
}

# client_hold NAME KIND KEY: a program that waits for the lock, says "held", and keeps it until client_release or release NAME,
# which kills it.
client_hold() {
    if [[ $2 = cli:* ]]; then
        start "$1" bash "$tests/system/stores/redis/redis-lock.sh" \
            "${servers[0]##*:}" "$3" "$((${2#cli:} * 1000))"
    else
        start "$1" "$python" -u "$tests/system/stores/redis/redis_lock.py" hold "$2" "$3" "${servers[@]}"
    fi
}

# client_try KIND KEY: fails if somebody has it.
client_try() {
    local value=$RANDOM-$RANDOM
    if [[ $1 = cli:* ]]; then
        [ "$(cli SET "$2" "$value" NX PX "$((${1#cli:} * 1000))")" = OK ] || return 1
        expect_equal "deleted" 1 "$(cli EVAL "$compare_and_delete" 1 "$2" "$value")"
    else
        client_lock try "$1" "$2"
    fi
}

# client_release NAME: which was not lost.
client_release() {
    send_signal "$1" TERM
    wait_until "$deadline" gone "$1"
    said "$1" released || violation "$1 has lost its lock: $(tail -n 1 "$dir/$1.out")"
    finish "$1"
}
