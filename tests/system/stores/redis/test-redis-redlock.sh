#!/bin/bash
# Locks of the mount over five servers that do not know each other, and those of a Redlock client (the algorithm of its page), exclude
# each other on one key, both ways round, contended, and when either is killed; also while two of the servers are away. When
# three are away, nobody gets a lock, and holders are fenced.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=redis-clients.sh
. "$tests/system/stores/redis/redis-clients.sh"
# shellcheck source=redis-excludes.sh
. "$tests/system/stores/redis/redis-excludes.sh"

requires "$python" -c 'import redis'
start_redises 5
for name in redis{1,2,3,4,5}; do
    servers+=("$(redis_address "$name")")
done
for host in A B; do
    start_dlockfs "$host" --session-timeout 5s
done
excludes redlock:60
killed_client redlock:1
killed_host redlock:60
count_with redlock:60

# A minority is away: killed, and paused.
kill_redis redis1
pause redis2
excludes redlock:61
hold kept "$dir/A/kept"
expect kept held
resume redis2
rejoin_redis redis1
refused client_try redlock:60 dlockfs/kept
release kept
wait_until "$deadline" client_try redlock:60 dlockfs/kept

# A majority is away.
keep holder "$dir/A/majority" write
wait_until "$deadline" granted holder
for name in redis{2,3,4}; do
    pause "$name"
done
wait_until "$deadline" fenced holder
refused flock -n "$dir/B/minority" true
for name in redis{2,3,4}; do
    resume "$name"
done
release holder
comes_free "$dir/B/majority"
comes_free "$dir/A/minority"
