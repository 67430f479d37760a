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
sentinel_login=() # the same for Sentinels; empty: as redis_login
redis_durable=yes # always: each write is on the disk before its answer; no: what a server keeps ends with its process
redis_scheme=redis # rediss: by TLS; with --tls-cert-file and the like in redis_options, and --tls --cacert FILE in redis_login

# redis [-n NAME] COMMAND ARGUMENT...: redis-cli, with the server that was started alone, or that of the name.
redis() {
    local name=redis login=("${redis_login[@]}")
    [ "$1" != -n ] || { name=$2; shift 2; }
    [[ $name != sentinel* ]] || [ ${#sentinel_login[@]} -eq 0 ] || login=("${sentinel_login[@]}")
    timeout "$deadline" redis-cli -h 127.0.0.1 -p "$(<"$dir/$name/port")" "${login[@]}" "$@"
}

redis_address() {
    echo "127.0.0.1:$(<"$dir/${1:-redis}/port")"
}

# redis_serves NAME: it answers, and has loaded what it keeps.
redis_serves() {
    [ "$(deadline=5 redis -n "$1" PING 2>/dev/null)" = PONG ]
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

# start_redis_sentinels N [LINE...]: Sentinels sentinel1 to sentinelN, which know the server `redis` as `main`, its replicas, and each
# other, with these additional lines of configuration. Sets the variable store to a URL of all. They take nobody for dead by themselves: redis_failover.
start_redis_sentinels() {
    local number servers="" folder port
    [ "$redis_scheme" = redis ] && port=port || port=tls-port
    for ((number = 1; number <= $1; number++)); do
        folder=$dir/sentinel$number
        mkdir -p "$folder"
        free_port >"$folder/port"
        printf '%s\n' 'port 0' "$port $(<"$folder/port")" 'bind 127.0.0.1' "dir $folder" \
            "sentinel monitor main 127.0.0.1 $(<"$dir/redis/port") $(($1 / 2 + 1))" \
            'sentinel down-after-milliseconds main 600000' "${@:2}" >"$folder/conf"
        setsid "${servers_under[@]}" redis-server "$folder/conf" --sentinel >>"$folder.log" 2>&1 </dev/null &
        process_record "$dir" "sentinel$number" $!
        servers+=${servers:+,}$(redis_address "sentinel$number")
    done
    for ((number = 1; number <= $1; number++)); do
        wait_until "$deadline" redis_knows_all "sentinel$number" "$(($1 - 1))" "$(redis INFO replication | grep -c '^slave[0-9]*:')"
    done
    store=$redis_scheme+sentinel://$servers/main/dlockfs
}

# redis_knows_all SENTINEL OTHERS REPLICAS: it knows so many.
redis_knows_all() {
    redis_serves "$1" || return 1
    [ "$(redis -n "$1" SENTINEL master main | grep -A1 -xE 'num-(slaves|other-sentinels)' | grep -xE '[0-9]+' | tr '\n' ' ')" = "$3 $2 " ] &&
        [ "$(redis -n "$1" SENTINEL replicas main | grep -A1 -xE 'master-link-status' | grep -cx ok)" -eq "$3" ]
}

# redis_primary SENTINEL: the name of the server that it takes for the primary.
redis_primary() {
    local port name
    port=$(redis -n "$1" SENTINEL get-master-addr-by-name main | tail -n 1)
    for name in "$dir"/*/port; do
        [ "$(<"$name")" != "$port" ] || basename "${name%/port}"
    done
}

# redis_failover: the Sentinels make a replica the primary. Sets the variable primary to its name.
redis_failover() {
    local before
    before=$(redis_primary sentinel1)
    wait_until "$deadline" redis_fails_over
    wait_until "$deadline" redis_failed_over "$before"
    primary=$(redis_primary sentinel1)
}

redis_fails_over() {
    [ "$(redis -n sentinel1 SENTINEL failover main)" = OK ]
}

redis_failed_over() {
    [ "$(redis_primary sentinel1)" != "$1" ]
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
