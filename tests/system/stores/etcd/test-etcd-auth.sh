#!/bin/bash
# The users of etcd are changed while locks are held and waited for: users are made to count, others are added, a password is given
# anew; with simple tokens and with those of jwt. A host that has been given its user from the start says anew who it is, and goes on.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
requires command -v openssl

session=6 # seconds
root=(--user root:r00t)

# goes_on WHAT: for longer than a session lasts by itself who holds does so, who waits does so, and others lock.
goes_on() {
    local until=$((SECONDS + session + 1))
    while [ $SECONDS -lt $until ]; do
        flock -w "$deadline" "$dir/A/beside" flock -w "$deadline" "$dir/B/late" true || fail "no lock after $1"
        sleep 0.2
    done
    not_fenced holder
    not_granted waiter "$1"
    ! grep -h 'lost\|accept\|error:' "$dir/A.log" "$dir/B.log" || fail "after $1: see above"
}

# begin_with NAME OPTION...: a server of these options, a lock that A holds and B waits for; then users count.
begin_with() {
    local host
    etcd_options=("${@:2}")
    start_etcd "$1"
    etcd_add_users
    for host in A B; do
        rm -f "$dir/$host.log"
        start_dlockfs "$host" --session-timeout ${session}s -o "etcd_user=host,etcd_password_file=$dir/password"
    done
    keep holder "$dir/A/job" flock
    wait_until "$deadline" granted holder
    keep waiter "$dir/B/job" flock
    wait_claims job 2
    etcd auth enable >/dev/null
    goes_on "auth enable"
}

# end_with NAME
end_with() {
    etcd "${root[@]}" auth disable >/dev/null
    release holder
    wait_until "$deadline" granted waiter
    release waiter
    stop_dlockfs A
    stop_dlockfs B
    kill_etcd "$1"
}

(umask 077 && echo s3cret >"$dir/password")
begin_with simple
etcd "${root[@]}" user passwd host --interactive=false <<<s3cret >/dev/null
goes_on "user passwd"
end_with simple

openssl genrsa -out "$dir/jwt.key" 2048 2>/dev/null
openssl rsa -in "$dir/jwt.key" -pubout -out "$dir/jwt.pub" 2>/dev/null
begin_with jwt --auth-token "jwt,pub-key=$dir/jwt.pub,priv-key=$dir/jwt.key,sign-method=RS256,ttl=10m"
etcd "${root[@]}" user add other:word >/dev/null
etcd "${root[@]}" role add others >/dev/null
goes_on "user add, role add"
end_with jwt
