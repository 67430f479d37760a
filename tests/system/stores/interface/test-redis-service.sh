#!/bin/bash
# The service of the store for Redis against real servers: keys are taken, renewed and given back, and what is not to stand is undone,
# while servers are killed, paused, full, replicas, or do not know us; one server and three; without TLS and by TLS. See redis_asker.c.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

asker=$build/tests/system/stores/interface/redis_asker
requires test -x "$asker"
requires type -P redis-server
requires command -v openssl

# ask_with NAME [ARGUMENT...]: an asker of $store. From now on `ask` is of it.
ask_with() {
    who=$1
    mkfifo "$dir/$who.commands"
    start "$who" "$asker" "$store" "$dir/$who.commands" "${@:2}"
}

# ask REQUEST...: a line for the asker.
ask() {
    echo "$*" >"$dir/$who.commands"
}

# answered REQUEST-AND-ANSWER
answered() {
    expect "$who" "$1"
}

# told PATTERN [TIMES]: what the asker wrote.
told() {
    [ "$(grep -c "$1" "$dir/$who.out")" -ge "${2:-1}" ]
}

connected() { # [TIMES]
    wait_until "$deadline" told '^connected ' "${1:-1}"
}

value_of() { # KEY [SERVER]
    redis -n "${2:-redis}" GET "$1"
}

has_value() { # KEY VALUE [SERVER]
    [ "$(value_of "$1" "${3:-}")" = "$2" ]
}

was_asked() { # SERVER
    [ "$(redis_calls info "$1")" -ge 1 ]
}

heard() { # CHANNEL
    [ "$(redis PUBSUB NUMSUB "$1" | tail -n 1)" -ge 1 ]
}

start_redis --notify-keyspace-events Kgx
ask_with one
connected

# The verbs.
ask 1 take k v1 20000
answered "1 ok"
[ "$(redis PTTL k)" -gt 15000 ] || fail "a key without its end"
ask 2 take k v2 20000
answered "2 EEXIST v1"
ask 3 renew k v2 20000
answered "3 ENOENT"
ask 4 renew k v1 60000
answered "4 ok"
[ "$(redis PTTL k)" -gt 50000 ] || fail "not renewed"
ask 5 stamp k v1 60000
answered "5 ok 1"
ask 6 stamp k v1 60000
answered "6 ok 2"
ask 7 give k v2 60000
answered "7 ENOENT"
ask 8 read k
answered "8 ok v1 ends"

# What is heard: our own message, and the server's.
ask 9 listen k
answered "9 ok"
wait_until "$deadline" heard k//released
wait_until "$deadline" heard __keyspace@0__:k
ask 10 give k v1 60000
answered "10 ok"
wait_until "$deadline" told '^hint k$' 1
redis SET k other >/dev/null
ask 11 read k
answered "11 ok other never"
hints=$(grep -c '^hint k$' "$dir/one.out")
redis DEL k >/dev/null
wait_until "$deadline" told '^hint k$' $((hints + 1))
ask 12 unlisten k

# As Redisson has it: a hash, and its channels.
ask r1 take hashed v:write 20000
answered "r1 ok"
expect_equal "mode" write "$(redis HGET hashed mode)"
[ "$(redis PTTL hashed)" -gt 15000 ] || fail "a key without its end"
ask r2 take hashed w:write 20000
answered "r2 EEXIST v:write"
ask r3 renew hashed v:write 60000
answered "r3 ok"
[ "$(redis PTTL hashed)" -gt 50000 ] || fail "not renewed"
ask r4 stamp hashed v:write 60000
answered "r4 ok 1"
ask r5 read hashed
answered "r5 ok v:write ends"
ask r6 take hashed plain 20000
answered "r6 EBADMSG"
ask r7 take k w:write 20000
answered "r7 ok"
ask r8 give k plain 20000
answered "r8 EBADMSG"
ask r9 give k w:write 20000
answered "r9 ok"
ask r10 listen 'of{k}' w:write
answered "r10 ok"
for channel in 'redisson_lock__channel:of{k}' 'redisson_rwlock:of{k}'; do
    wait_until "$deadline" heard "$channel"
    redis PUBLISH "$channel" 0 >/dev/null
done
wait_until "$deadline" told '^hint of{k}$' 2
ask r11 give hashed v:write 60000
answered "r11 ok"
expect_equal "left" 0 "$(redis EXISTS hashed)"

# Others' keys: of another type, and with a value that is no use to anybody.
redis HSET hash field value >/dev/null
ask 13 take hash v 20000
answered "13 EBADMSG"
ask 14 renew hash v 20000
answered "14 EBADMSG"
head -c 20000000 /dev/zero | tr '\0' x | redis -x SET long >/dev/null
ask 15 take long v 20000
wait_until "$deadline" told '^15 EEXIST xxx'
ask 16 read long
wait_until "$deadline" told '^16 ok xxx.* never$'

# Scripts that the server has forgotten.
redis SCRIPT FLUSH >/dev/null
ask 17 take k v1 60000
ask 18 renew k v1 60000
answered "18 ok"
redis SCRIPT FLUSH >/dev/null
ask 19 give k v1 60000
ask 19-next take k v2 60000
answered "19 ok"
answered "19-next ok"
ask 19-over give k v2 60000
answered "19-over ok"

# A server that is full.
redis CONFIG SET maxmemory 1mb >/dev/null
ask 20 take full v 20000
answered "20 ENOMEM"
ask 21 trouble
answered "21 the server is full (maxmemory)"
redis CONFIG SET maxmemory 0 >/dev/null
ask 22 take full v 20000
answered "22 ok"
ask 23 trouble
answered "23 none"

# A server that is killed, with what was not answered: it is asked again.
ask 24 take k v1 60000
answered "24 ok"
kill_redis
wait_until "$deadline" told '^lost$'
ask 25 take k v2 20000
answered "25 refused ENOTCONN"
ask 26 give k v1 60000
answered "26 ECONNRESET"
rejoin_redis
connected 2
wait_until "$deadline" has_value k ""
release one

# A server that is paused does what it was asked when it goes on, which is undone.
ask_with two 500
connected
pause redis
ask 1 take paused v1 60000
answered "1 ECONNRESET"
resume redis
connected 2
wait_until "$deadline" has_value paused ""
ask 2 take paused v2 60000
answered "2 ok"
release two
stop_redis

# Who we are.
rm -rf "${dir:?}/redis"
redis_login=(--pass secret --no-auth-warning)
start_redis --requirepass secret
ask_with stranger
wait_until "$deadline" told '^lost '
ask 1 trouble
answered "1 the server wants to know who we are: set redis_password_file, or user and password in url"
echo wrong >"$dir/password"
chmod 600 "$dir/password"
ask_with wrong 5000 "" "$dir/password"
wait_until "$deadline" told '^lost .*WRONGPASS'
ask 1 trouble
answered "1 the server refuses user and password: see redis_user and redis_password_file, or url"
echo secret >"$dir/password"
ask_with known 5000 "" "$dir/password"
connected
redis ACL SETUSER locks on '>pass word' '~dlockfs/*' '+@all' >/dev/null
redis ACL SETUSER mute on '>pass word' '~*' '+@all' '-@scripting' >/dev/null
store=${store/:\/\//://mute:pass%20word@} ask_with mute
wait_until "$deadline" told '^lost .*the server does not allow its user what locks need'
store=${store/:\/\//://locks:pass%20word@} ask_with limited
connected
ask 1 take dlockfs/k v 20000
answered "1 ok"
ask 3 take other v 20000
answered "3 EACCES"
ask 4 trouble
answered "4 the server does not allow its user what locks need: commands, keys or channels (ACL LOG)"
! grep -q 'pass word' "$dir"/*.out || fail "a password is shown"
release stranger wrong known limited mute
redis_login=()
stop_redis

# A replica serves once it is a primary; a primary that becomes a replica is left.
rm -rf "${dir:?}/redis"
start_redis_replicas 1
store=redis://$(redis_address replica1)/dlockfs
ask_with replica
wait_until "$deadline" told '^lost .*the server is a replica'
redis_promote replica1
connected
ask 1 take k v 20000
answered "1 ok"
redis -n replica1 REPLICAOF 127.0.0.1 "$(<"$dir/redis/port")" >/dev/null
ask 2 renew k v 20000
wait_until "$deadline" told '^2 \(EROFS\|ECONNRESET\|ENOENT\|refused\)'
wait_until "$deadline" told '^lost .*the server is a replica' 2
release replica
stop_redis replica1
stop_redis

# Three servers: the majority counts, and what a minority has granted is undone.
start_redises 3
ask_with three
for server in redis1 redis2 redis3; do
    wait_until "$deadline" was_asked "$server"
done
connected
ask 1 take k v1 60000
answered "1 ok"
for server in redis1 redis2 redis3; do
    wait_until "$deadline" has_value k v1 "$server"
done
kill_redis redis1
ask 2 renew k v1 60000
answered "2 ok"
ask 3 stamp k v1 60000
answered "3 refused EOPNOTSUPP"
ask 4 give k v1 60000
answered "4 ok"
rejoin_redis redis1
wait_until "$deadline" has_value k "" redis1
for server in redis1 redis2; do
    redis -n "$server" SET k other PX 60000 >/dev/null
done
ask 5 take k v2 60000
answered "5 EEXIST other"
wait_until "$deadline" has_value k "" redis3
kill_redis redis1
kill_redis redis2
wait_until "$deadline" told '^lost$'
release three
stop_redis redis3

# By TLS.
etcd_certificate ca ca
etcd_certificate server ca
# shellcheck disable=SC2034 # of redis.sh
redis_scheme=rediss redis_login=(--tls --cacert "$dir/ca.pem")
rm -rf "${dir:?}/redis"
start_redis --tls-cert-file "$dir/server.pem" --tls-key-file "$dir/server.key" --tls-ca-cert-file "$dir/ca.pem" --tls-auth-clients no
ask_with trusting 5000 "$dir/ca.pem"
connected
ask 1 take k v 20000
answered "1 ok"
ask_with doubtful
wait_until "$deadline" told "^lost .*the server's certificate is refused"
