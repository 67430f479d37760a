#!/bin/bash
# With redis_replicas a lock is granted once so many replicas have it, and its host keeps it when one of those is promoted. While too few
# answer nobody gets a lock, nothing is left behind, and a holder is told although the server itself has its renewals; then all goes on.
# That the lock is lost without redis_replicas shows redis-limits.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

at_once=(--repl-diskless-sync-delay 0) # replicas that come get what they lack

# has_key NAME LOCK: the server has its key.
has_key() {
    [ "$(redis -n "$1" EXISTS "dlockfs/$2")" = 1 ]
}

has_no_key() {
    [ "$(redis -n "$1" EXISTS "dlockfs/$2")" = 0 ]
}

# was_renewed NAME [TIMES]: the server has heard that a key lives on.
was_renewed() {
    [ "$(redis_calls pexpire "$1")" -ge "${2:-1}" ]
}

# shows HOST WORDS: in its status.
shows() {
    grep -q "^store_error=.*$2" "$dir/$1/.dlockfs/status"
}

printf '%s\n' '[store]' 'redis_replicas = 1' '[locks]' 'try_limit = 1s' >"$dir/config.ini"
start_redis_replicas 2 "${at_once[@]}"
for host in A B; do
    start_dlockfs "$host" --session-timeout 60s --config "$dir/config.ini"
done

# One of the replicas has the lock; it is promoted, in the primary's place.
pause replica2
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
has_key replica1 job || fail "the lock was granted before a replica had it"
keep rival "$dir/B/job" flock
wait_until "$deadline" asleep rival
value=$(redis GET dlockfs/job)
kill_redis redis
kill_redis replica1
cp "$dir/redis/port" "$dir/replica1/port"
redis_start replica1 --replicaof no one "${at_once[@]}"
resume replica2
wait_until "$deadline" redis_has_replicas replica1 1
wait_until "$deadline" was_renewed replica1
expect_equal "who has the key" "$value" "$(redis -n replica1 GET dlockfs/job)"
not_fenced holder
not_granted rival
release holder
wait_until "$deadline" granted rival
release rival
comes_free "$dir/A/job"

# The only replica does not answer: who waits goes on waiting, who does not is refused, and neither leaves a key.
pause replica2
refused flock -n "$dir/A/other" true
wait_until "$deadline" shows A redis_replicas
hold waiter "$dir/B/other"
wait_until "$deadline" shows B redis_replicas
asleep waiter || fail "granted without a replica: $(<"$dir/waiter.out")"
release waiter
wait_until "$deadline" has_no_key replica1 other
hold waiter "$dir/B/other"
wait_until "$deadline" asleep waiter
resume replica2
expect waiter held
has_key replica2 other || fail "the lock was granted before the replica had it"
if shows B redis_replicas; then
    fail "the status still tells of replicas that are missing"
fi
release waiter

# Renewals that no replica has do not count: the holder is told, though the server goes on to have them.
start_dlockfs C --session-timeout 3s --config "$dir/config.ini"
keep holder "$dir/C/short" flock
wait_until "$deadline" granted holder
renewals=$(redis_calls pexpire replica1)
pause replica2
wait_until "$deadline" fenced holder
was_renewed replica1 $((renewals + 2)) || fail "the server has heard of no renewal"
resume replica2
never_revived holder
release holder
comes_free "$dir/A/short"

# On their disks: where the server can tell (Redis 7.2), else that is refused.
redis_start disk --appendfsync always
store=redis://$(redis_address disk)/dlockfs
printf '%s\n' '[store]' 'redis_on_disk = yes' '[locks]' 'try_limit = 1s' >"$dir/disk.ini"
start_dlockfs D --config "$dir/disk.ini"
if [ -n "$(redis -n disk COMMAND INFO waitaof)" ]; then
    flock "$dir/D/job" true
    [ "$(redis_calls waitaof disk)" -ge 2 ] || fail "the server was not asked"
else
    refused flock -n "$dir/D/job" true
    wait_until "$deadline" shows D 'redis_on_disk needs Redis 7.2'
fi
