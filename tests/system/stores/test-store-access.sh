#!/bin/bash
# Hosts with a common secret own what they create in ZooKeeper: without it nobody can take a lock away, get in front or bar it, but
# see who waits for it. All hosts with the secret can do everything that one could do alone. What is refused is told, and ends.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

umask 077
printf 'hosts:s3cret:word\n' >"$dir/secret"
printf 'hosts:another' >"$dir/other"
umask 022
zookeeper_options=(-Dznode.container.checkIntervalMs=500)
start_zookeeper
export ZOOKEEPER_AUTH

# as WHO COMMAND...: with the contents of a file as the secret, or as nobody.
as() {
    local ZOOKEEPER_AUTH=
    [ "$1" = nobody ] || ZOOKEEPER_AUTH=$(<"$dir/$1")
    shift
    "$@"
}

# lines HOST TEXT
lines() {
    grep -cF -- "$2" "$dir/$1.log" || true
}

# told HOST NUMBER TEXT: until it has said so as often.
told() {
    [ "$(lines "$1" "$3")" -eq "$2" ]
}

start_dlockfs A -o "digest_file=$dir/secret" --session-timeout 2m
start_dlockfs B -o "digest_file=$dir/secret" --session-timeout 4s
hold holder "$dir/A/job"
expect holder held
hold waiter "$dir/B/job"
as secret wait_claims job 2

# The root was there before the first lock, and stays.
for znode in /dlockfs /dlockfs/job "/dlockfs/job/$(as nobody zookeeper claims /dlockfs/job | head -n 1)"; do
    expect_equal "rights on $znode" "digest hosts cdrwa,world anyone r" "$(as secret zookeeper acl "$znode" | paste -sd,)"
done
for who in nobody other; do
    expect_equal "what $who can do" "place: NoAuthError,change: NoAuthError,delete: NoAuthError,open claim: NoAuthError,\
open lock: NoAuthError,open root: NoAuthError,bar others: NoAuthError,mark root: NoAuthError,list: ok,read: ok" \
        "$(as $who zookeeper intrude /dlockfs/job | paste -sd,)"
done

# A host without the secret, and one with another: refused at once, in few words; what it looks at is all there.
start_dlockfs N --session-timeout 4s
start_dlockfs O -o "digest_file=$dir/other" --session-timeout 4s
for host in N O; do
    wait_until "$deadline" told $host 1 'cannot create locks below /dlockfs: not authenticated'
    grep -q '^store=.* connected to .*: no locks can be created there$' "$dir/$host/.dlockfs/status"
    expect_status 1 "$dlockctl" --mount "$dir/$host" doctor >"$dir/doctor.out"
    grep -q '^error: store: .*: no locks can be created there' "$dir/doctor.out"
    call refused "$dir/$host/job" open ex-nb ex close
    finish refused
    expect_equal "calls without the secret" "open ok,ex-nb ENOLCK,ex ENOLCK,close ok" "$(paste -sd, "$dir/refused.out")"
    expect_equal "what $host says" 1 "$(lines $host 'error: job: the store refuses')"
    expect_equal "what $host sees" 2 "$("$dlockctl" --mount "$dir/$host" show job | grep -c 'held\|waiting')"
    expect_status 77 "$dlockctl" --mount "$dir/$host" break job --yes 2>"$dir/err"
    expect_equal "what dlockctl says" 1 "$(wc -l <"$dir/err")"
done

# Private: others do not even see it.
store=zookeeper://$(zookeeper_address)/private start_dlockfs Q -o "digest_file=$dir/secret,acl=private" --session-timeout 4s
store=zookeeper://$(zookeeper_address)/private start_dlockfs R --session-timeout 4s
hold private "$dir/Q/job"
expect private held
expect_equal "rights on what is private" "digest hosts cdrwa" "$(as secret zookeeper acl /private/job)"
expect_status 77 "$dlockctl" --mount "$dir/R" show job 2>"$dir/err"
expect_status 71 flock -n "$dir/R/job" true 2>"$dir/err"
release private
stop_dlockfs Q
stop_dlockfs R

# Another host with the secret: it breaks the lock, and one that is not its own is waited for.
"$dlockctl" --mount "$dir/B" break job --yes >"$dir/out"
expect waiter held
release holder waiter
comes_free "$dir/A/job"

# Idle locks are removed all the same, and the path stays.
removed() {
    [ "$(as secret zookeeper children /dlockfs | grep -vx .dlockfs | sort | paste -sd' ')" = .dlockfs-settled ]
}
wait_until "$deadline" removed
as nobody zookeeper data /dlockfs >"$dir/data"
flock -n "$dir/B/job" true

# The session is lost: the next one is told again. The connection is lost: so is the next one, of the same session.
start_proxy link
store=$(proxied link) start_dlockfs L -o "digest_file=$dir/secret" --session-timeout 1s
hold holder "$dir/L/link"
expect holder held
cut_link link
wait_until "$deadline" told L 1 'link: lock lost with the session'
join_link link
release holder
comes_free "$dir/L/link"
stop_dlockfs L
hold holder "$dir/A/job"
expect holder held
restart_zookeeper zk
comes_free "$dir/A/new"
expect_equal "sessions of A" 1 "$(grep -o 'session 0x[0-9a-f]*' "$dir/A.log" | sort -u | wc -l)"
as secret zookeeper claims /dlockfs/job >"$dir/claims"
expect_equal "claims that stayed" 1 "$(wc -l <"$dir/claims")"
release holder

# A claim that this host may not even read: it waits for it, and no longer.
start stranger env ZOOKEEPER_AUTH="$(<"$dir/other")" "$python" -u "$tests/lib/zookeeper.py" "$(zookeeper_address)" \
    hold /open/lock _c_1-__WRIT__
store=zookeeper://$(zookeeper_address)/open start_dlockfs P --session-timeout 4s
wait_until "$deadline" test -s "$dir/stranger.out"
as other zookeeper only "/open/lock/$(<"$dir/stranger.out")"
hold waiter "$dir/P/lock"
as other zookeeper wait-claims /open/lock 2 "$deadline"
wait_until "$deadline" told P 1 'not authenticated'
expect_status 1 flock -n "$dir/P/lock" true
as other zookeeper delete "/open/lock/$(<"$dir/stranger.out")"
expect waiter held
release waiter stranger

# The secret is nowhere but in its file.
if grep -rlF -e s3cret "$dir"/*.log "$dir"/*.out "$dir/A/.dlockfs/status" "$dir/A/.dlockfs/metrics" ||
    tr '\0' '\n' <"/proc/$(pid A)/cmdline" | grep s3cret; then
    fail "the secret was told"
fi
