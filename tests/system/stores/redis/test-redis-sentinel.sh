#!/bin/bash
# The primary is found by asking Sentinels. When they make another server the primary, locks that its replicas had are held there, by who
# held them: when the former one has died, and when it hangs, as the Sentinels tell of it. One of them that is away does no harm; without any
# answer nobody gets a lock, and the status says why. All of that by TLS, where the servers and the Sentinels have passwords of their own.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

was_renewed() { # NAME
    [ "$(redis_calls pexpire "$1")" -ge 1 ]
}

# went_on LOCK VALUE: the key is at the new primary, and its host knows.
# shellcheck disable=SC2154 # which redis_failover sets
went_on() {
    wait_until "$deadline" was_renewed "$primary"
    expect_equal "who has the key" "$2" "$(redis -n "$primary" GET "dlockfs/$1")"
    not_fenced holder
    not_granted rival
}

# heard HOST: that another server is the primary by now.
heard() {
    grep -q 'it is another server by now' "$dir/$1.log"
}

# shows HOST WORDS: in its status.
shows() {
    grep -q "^store_error=.*$2" "$dir/$1/.dlockfs/status"
}

etcd_certificate ca ca
etcd_certificate server ca
tls=("tls-cert-file $dir/server.pem" "tls-key-file $dir/server.key" "tls-ca-cert-file $dir/ca.pem" 'tls-auth-clients no' 'tls-replication yes')
redis_scheme=rediss
redis_login=(--tls --cacert "$dir/ca.pem" --pass of-servers --no-auth-warning)
sentinel_login=(--tls --cacert "$dir/ca.pem" --pass of-sentinels --no-auth-warning)
mapfile -t redis_options < <(printf -- '--%s\n' "${tls[@]}" 'requirepass of-servers' 'masterauth of-servers' | tr ' ' '\n')
start_redis_replicas 2 --repl-diskless-sync-delay 0
start_redis_sentinels 3 "${tls[@]}" 'requirepass of-sentinels' 'sentinel auth-pass main of-servers'
for name in servers sentinels; do
    (umask 077 && echo "of-$name" >"$dir/$name.password")
done
printf '%s\n' '[store]' "tls_ca = $dir/ca.pem" "redis_password_file = $dir/servers.password" "sentinel_password_file = $dir/sentinels.password" \
    'redis_replicas = 1' '[locks]' 'try_limit = 1s' >"$dir/config.ini"
for host in A B; do
    start_dlockfs "$host" --session-timeout 90s --config "$dir/config.ini"
done
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep rival "$dir/B/job" flock
wait_until "$deadline" asleep rival
value=$(redis GET dlockfs/job)

# The primary dies, and a Sentinel with it.
kill_redis redis
kill_redis sentinel3
redis_failover
went_on job "$value"

# The next one hangs: nothing ends the connections to it, so the Sentinels' word alone tells.
former=$primary
pause "$former"
redis_failover
wait_until "$deadline" heard A
wait_until "$deadline" heard B
resume "$former"
redis -n "$former" REPLICAOF 127.0.0.1 "$(<"$dir/$primary/port")" >/dev/null # as the Sentinels do, a while later
went_on job "$value"
release holder
wait_until "$deadline" granted rival
release rival
comes_free "$dir/A/job"

# It does not know the service.
store=rediss+sentinel://$(redis_address sentinel1)/other/dlockfs
start_dlockfs C --config "$dir/config.ini"
refused flock -n "$dir/C/job" true
wait_until "$deadline" shows C Sentinel
grep -q 'does not tell the primary of other' "$dir/C.log" || fail "the log does not say why: $(<"$dir/C.log")"

# The servers' password is not the Sentinels'.
sed '/^sentinel_/d' "$dir/config.ini" >"$dir/stranger.ini"
start_dlockfs D --config "$dir/stranger.ini"
refused flock -n "$dir/D/job" true
wait_until "$deadline" shows D 'see sentinel_user and sentinel_password_file'
