#!/bin/bash
# The path of the store is created where it may be, and what bars it is told at once. Servers that do not accept who the host is,
# or ask it and are not told, are tried again, now and then; so long nothing hangs, and when they do accept it all works.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

umask 077
echo hosts:secret >"$dir/secret"
umask 022
start_zookeeper
address=$(zookeeper_address)

# told HOST NUMBER TEXT: until it has said so as often.
told() {
    [ "$(grep -cF -- "$3" "$dir/$1.log")" -eq "$2" ]
}

# store_is HOST TEXT [ERROR]: what its status says of the connection ends like that, and it names that error, or none.
store_is() {
    grep -q "^store=.*$2${3:-}\$" "$dir/$1/.dlockfs/status"
    expect_equal "error that $1 names" "${3:-}" "$(sed -n 's/^store_error=//p' "$dir/$1/.dlockfs/status")"
}

# Missing, also above; with the secret, and without.
store=zookeeper://$address/made/by/A start_dlockfs A --verbose -o "digest_file=$dir/secret" --session-timeout 4s
store=zookeeper://$address/made-by-B start_dlockfs B --session-timeout 4s
wait_until "$deadline" flock -n "$dir/A/job" true
wait_until "$deadline" flock -n "$dir/B/job" true
for znode in /made /made/by /made/by/A; do
    expect_equal "rights on $znode" "digest hosts cdrwa,world anyone r" "$(ZOOKEEPER_AUTH=$(<"$dir/secret") zookeeper acl "$znode" | paste -sd,)"
done
expect_equal "rights on /made-by-B" "world anyone cdrwa" "$(zookeeper acl /made-by-B)"
stop_dlockfs B

# It may not be created; it is there, though what is above may not be used; it is open.
zookeeper make /closed/there
zookeeper allow /closed read
store=zookeeper://$address/closed/missing start_dlockfs C --session-timeout 4s
store=zookeeper://$address/closed/there start_dlockfs D --session-timeout 4s
store=zookeeper://$address/made-by-B start_dlockfs E -o "digest_file=$dir/secret" --session-timeout 4s
wait_until "$deadline" told C 1 'cannot create /closed/missing: not authenticated'
store_is C ' connected to .*: ' 'no locks can be created there'
expect_status 71 flock -n "$dir/C/job" true 2>"$dir/err"
wait_until "$deadline" flock -n "$dir/D/job" true
expect_equal "errors of D" "" "$(grep error "$dir/D.log" || true)"
wait_until "$deadline" told E 1 'others may do more than read in /made-by-B'
wait_until "$deadline" flock -n "$dir/E/job" true
for host in C D E; do
    stop_dlockfs $host
done

# Servers that do not know the scheme: what is held is lost, and nothing else is waited for beyond its limits.
hold holder "$dir/A/job"
expect holder held
stop_zookeeper zk
zookeeper_options=(-Dzookeeper.DigestAuthenticationProvider.enabled=false)
begin=$(now_ms)
start_zookeeper zk
wait_until "$deadline" told A 1 'the servers do not accept who we are'
store_is A 'not connected: ' 'the servers do not accept who we are'
expect_equal "holders" holders=0 "$(grep ^holders "$dir/A/.dlockfs/status")"
release holder
call tried "$dir/A/other" open ex-nb
finish tried
expect_equal "a call that does not wait" "open ok,ex-nb ENOLCK" "$(paste -sd, "$dir/tried.out")"
hold waiter "$dir/A/other"

# refusals: how often ZooKeeper's client was told.
refusals() {
    grep -c 'Authentication scheme digest failed' "$dir/A.log"
}
tried_again() {
    [ "$(refusals)" -gt 1 ]
}
wait_until "$deadline" tried_again
attempts=$(refusals)
[ "$attempts" -le $((($(now_ms) - begin) / 5000 + 1)) ] || fail "$attempts attempts in $(($(now_ms) - begin)) ms"
told A 1 'the servers do not accept who we are' || fail "told again"

# Servers that know it, and serve nobody else: A, but not who is connected without a secret, or begins to.
store=zookeeper://$address/made-by-B start_dlockfs F --session-timeout 4s
hold kept "$dir/F/job"
expect kept held
stop_zookeeper zk
zookeeper_options=(-Dzookeeper.enforce.auth.enabled=true -Dzookeeper.enforce.auth.schemes=digest)
start_zookeeper zk
store=zookeeper://$address/made-by-B start_dlockfs G --session-timeout 4s -o try_limit=100ms
expect waiter held
store_is A ' ms'
release waiter
asks='the servers ask who we are, expected digest_file, tls_certificate or sasl_mechanism'
for host in F G; do
    wait_until "$deadline" told $host 1 "$asks; trying again every 5 s"
    store_is $host "not connected: " "$asks"
done
expect_equal "holders" holders=0 "$(grep ^holders "$dir/F/.dlockfs/status")"
release kept
call tried "$dir/G/other" open ex-nb
finish tried
expect_equal "a call that does not wait" "open ok,ex-nb ENOLCK" "$(paste -sd, "$dir/tried.out")"
told G 0 'connected to ZooKeeper' || fail "G was connected"
