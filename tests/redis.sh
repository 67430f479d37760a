# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what tests use, what functions.sh sets
# Redis' servers and its client redis-cli, for tests. Sourced by functions.sh.
#
# What the server NAME keeps is in $dir/NAME, its messages in $dir/NAME.log. It is paused and resumed as any program that a test
# started (pause, resume), and a link to it is cut as one to ZooKeeper: start_proxy LINK NAME, cut_link, join_link.
#
# What a server has acknowledged survives its end, if not a loss of power, unless redis_durable says otherwise.
#
# From the environment: DLOCKFS_REDIS_BIN, the folder with the programs redis-server and redis-cli, instead of those of this machine.

[ -z "${DLOCKFS_REDIS_BIN:-}" ] || PATH=$DLOCKFS_REDIS_BIN:$PATH
unset "${!REDIS@}"

redis_options=()  # additional options of the servers, as in redis.conf behind two minus signs: --requirepass secret
redis_login=()    # how redis-cli shows who it is: --user NAME --pass PASSWORD --no-auth-warning
redis_durable=yes # always: each write is on the disk before its answer; no: what a server keeps ends with its process
redis_scheme=redis # rediss: by TLS; with --tls-cert-file and the like in redis_options, and --tls --cacert FILE in redis_login

# redis [-n NAME] COMMAND ARGUMENT...: redis-cli, with the server that was started alone, or that of the name.
redis() {
    local name=redis
    [ "$1" != -n ] || { name=$2; shift 2; }
    timeout "$deadline" redis-cli -h 127.0.0.1 -p "$(<"$dir/$name/port")" "${redis_login[@]}" "$@"
}

redis_address() {
    echo "127.0.0.1:$(<"$dir/${1:-redis}/port")"
}

# redis_serves NAME: it answers, and has loaded what it keeps.
redis_serves() {
    [ "$(timeout 5 redis-cli -h 127.0.0.1 -p "$(<"$dir/$1/port")" "${redis_login[@]}" PING 2>/dev/null)" = PONG ]
}

# redis_settled NAME: the server serves, or it has ended (its port was taken in the meantime).
redis_settled() {
    gone "$1" || redis_serves "$1"
}

# redis_launch NAME [OPTION...]: starts a server, the second time with the same data, port and options; without waiting for it.
redis_launch() {
    local name=$1 durable=(--appendonly yes --appendfsync no) ports options
    ports=(--port "$(<"$dir/$name/port")")
    [ "$redis_scheme" = redis ] || ports=(--port 0 --tls-port "$(<"$dir/$name/port")")
    shift
    mkdir -p "$dir/$name/data"
    [ $# -eq 0 ] && [ -e "$dir/$name/options" ] || printf '%s\0' "${redis_options[@]}" "$@" >"$dir/$name/options"
    mapfile -d '' -t options <"$dir/$name/options"
    [ -n "${options[0]}" ] || options=("${options[@]:1}")
    case $redis_durable in
        always) durable=(--appendonly yes --appendfsync always) ;;
        no) durable=(--appendonly no) ;;
    esac
    setsid "${servers_under[@]}" redis-server "${ports[@]}" --bind 127.0.0.1 --dir "$dir/$name/data" \
        --daemonize no --save '' "${durable[@]}" "${options[@]}" >>"$dir/$name.log" 2>&1 </dev/null &
    process_record "$dir" "$name" $!
}

# redis_start NAME [OPTION...]: starts a server, the second time with the same data, port and options.
redis_start() {
    local name=$1 attempt
    shift
    requires type -P redis-cli
    requires type -P redis-server
    for attempt in 1 2 3 4 5; do
        if [ "$attempt" -gt 1 ] || [ ! -e "$dir/$name/port" ]; then
            mkdir -p "$dir/$name"
            free_port >"$dir/$name/port"
        fi
        redis_launch "$name" "$@"
        wait_until "$deadline" redis_settled "$name"
        ! alive "$name" || return 0
        [ ! -e "$dir/$name/started" ] || break
    done
    fail "redis-server does not start: $(tail -n 3 "$dir/$name.log")"
}

# start_redis [OPTION...]: the server `redis`, alone. Sets the variable store to a URL on it.
start_redis() {
    redis_start redis "$@"
    store=$redis_scheme://$(redis_address)/dlockfs
}

# start_redises N [OPTION...]: servers redis1 to redisN, which do not know each other. Sets the variable store to a URL of all.
start_redises() {
    local number servers=""
    for ((number = 1; number <= $1; number++)); do
        redis_start "redis$number" "${@:2}"
        servers+=${servers:+,}$(redis_address "redis$number")
    done
    store=$redis_scheme://$servers/dlockfs
}

# start_redis_replicas N [OPTION...]: the server `redis` with replicas replica1 to replicaN, all in step. Sets the variable store
# to a URL of the primary.
start_redis_replicas() {
    local number
    start_redis "${@:2}"
    for ((number = 1; number <= $1; number++)); do
        redis_start "replica$number" --replicaof 127.0.0.1 "$(<"$dir/redis/port")" "${@:2}"
    done
    wait_until "$deadline" redis_has_replicas redis "$1"
}

# redis_has_replicas NAME N: so many replicas are in step with the server.
redis_has_replicas() {
    [ "$(redis -n "$1" INFO replication | grep -c '^slave[0-9]*:.*,state=online,')" -eq "$2" ]
}

# redis_promote NAME: a replica is a primary from now on.
redis_promote() {
    redis -n "$1" REPLICAOF NO ONE >/dev/null
}

# stop_redis [NAME]: a clean stop. What it keeps stays.
stop_redis() {
    end_redis "${1:-redis}" TERM
}

# kill_redis [NAME]: it dies without a chance to do anything.
kill_redis() {
    end_redis "${1:-redis}" KILL
}

end_redis() {
    touch "$dir/$1/started" # from now on it keeps its port
    send_signal "$1" "$2"
    finish "$1" 2>/dev/null || true
}

# forget_redis [NAME]: a server that was ended has lost what it kept.
forget_redis() {
    rm -rf "$dir/${1:-redis}/data"
}

# rejoin_redis [NAME]: a server that was ended goes on.
rejoin_redis() {
    redis_start "${1:-redis}"
}

# restart_redis [NAME]: killed, and started again.
restart_redis() {
    kill_redis "${1:-redis}"
    rejoin_redis "${1:-redis}"
}

# redis_calls COMMAND [NAME]: how often it was called, by `INFO commandstats`.
redis_calls() {
    redis -n "${2:-redis}" INFO commandstats | sed -nE "s/^cmdstat_$1:calls=([0-9]+).*/\1/p" | grep . || echo 0
}

# redis_wait_claims LOCK 0: until nobody has the lock. Redis knows no queue.
redis_wait_claims() {
    [ "$2" -eq 0 ] || fail "the servers do not know who waits for $1"
    wait_until "$deadline" redis_is_free "$1"
}

redis_is_free() {
    [ "$(redis EXISTS "dlockfs/$1")" = 0 ]
}
