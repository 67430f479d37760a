#!/bin/bash
# kill -9 of a daemon with its locks in Redis, and its restart as by a service manager: who holds and who waits does not notice, this
# host keeps the keys, and other hosts stay out; after the release all goes on, and no key is left.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../../lib/kept.sh
. "$tests/lib/kept.sh"

start_redis
# Whoever comes late is of the turn, too.
start_kept A --session-timeout 20s -o turn_time=1m
start_dlockfs B --session-timeout 20s -o turn_time=1m

keep flock "$dir/A/flock" flock
keep open "$dir/A/open" excl
call range "$dir/A/range" open w:0-9 r:20-29 await="$dir/range" w-nb:5-6 u:0-9 hold
call token "$dir/A/token" open ex token await="$dir/token-again" token hold
wait_until "$deadline" granted flock
wait_until "$deadline" granted open
expect range "r:20-29 ok"
wait_until "$deadline" grep -q '^token [0-9]' "$dir/token.out"
# Behind them, on the same host and on the other; and with B in front.
keep near "$dir/A/flock" flock
keep far "$dir/B/flock" flock
keep theirs "$dir/B/theirs" flock
wait_until "$deadline" granted theirs
keep behind "$dir/A/theirs" flock
for name in near far behind; do
    wait_until "$deadline" asleep "$name"
done
value=$(redis GET dlockfs/flock)

for _ in 1 2; do
    crash A
    restart_kept A
    expect_equal "the key" "$value" "$(redis GET dlockfs/flock)"
done
for name in flock open range token; do
    refused flock -n "$dir/A/$name" true
    refused flock -n "$dir/B/$name" true
done
refused flock -n "$dir/A/theirs" true
for name in near far behind; do
    not_granted "$name"
done

go range
expect range "w-nb:5-6 ok"
expect range "u:0-9 ok"
go token-again
wait_until "$deadline" eval "[ \"\$(grep -c '^token [0-9]' '$dir/token.out')\" -eq 2 ]"
expect_equal "tokens" 1 "$(grep '^token [0-9]' "$dir/token.out" | sort -u | wc -l)"
release flock
wait_until "$deadline" granted near
crash A
not_granted far
release near
wait_until "$deadline" granted far
release theirs
wait_until "$deadline" granted behind
for name in flock near open; do
    not_fenced "$name"
done
release far behind open range token
comes_free "$dir/B/open"
comes_free "$dir/B/range"
if grep 'lost\|giving it up\|beginning anew' "$dir/A.log"; then
    fail "something was lost"
fi
no_keys() {
    ! redis KEYS 'dlockfs/*' | grep -q '^[^/]*/[^/]*$'
}
wait_until "$deadline" no_keys
