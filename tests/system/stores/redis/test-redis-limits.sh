#!/bin/bash
# What Redis cannot promise, and other stores do, is shown: two hosts hold one lock, of which the first has not been told, when a server
# comes back without what it kept, when a replica is promoted that had not heard of the key, when a server's wall clock is set ahead, and
# when one of several servers comes back without what it kept. The first host, which does not run meanwhile, is told once it asks.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

clock_ahead() { # SECONDS
    echo "$1" >"$dir/clock.new"
    mv "$dir/clock.new" "$dir/clock"
}

# hosts_begin
hosts_begin() {
    start_dlockfs A --session-timeout 20s
    start_dlockfs B --session-timeout 20s
}

hosts_end() {
    stop_dlockfs A
    stop_dlockfs B
}

# two_hold COMMAND...: by the command two hosts hold one lock.
two_hold() {
    keep holder "$dir/A/job" flock
    wait_until "$deadline" granted holder
    keep rival "$dir/B/job" flock
    wait_until "$deadline" asleep rival
    suspend A
    "$@"
    wait_until "$deadline" granted rival
    not_fenced holder
    awake A
    wait_until "$deadline" fenced holder
    never_revived holder
    not_fenced rival
    release holder rival
    comes_free "$dir/A/job"
}

restart_empty() { # NAME...
    local name
    for name; do
        kill_redis "$name"
        forget_redis "$name"
        rejoin_redis "$name"
    done
}

# promote: the replica serves in the primary's place, by its address.
promote() {
    kill_redis redis
    kill_redis replica
    cp "$dir/redis/port" "$dir/replica/port"
    redis_start replica --replicaof no one
}

servers_under=(env "LD_PRELOAD=$build/tests/system/wall_clock.so" "TEST_WALL_CLOCK=$dir/clock")
start_redis
servers_under=()
hosts_begin
two_hold restart_empty redis
two_hold clock_ahead 60

# The replica is behind its primary: the link between them is cut.
start_proxy replication redis
redis_start replica --replicaof 127.0.0.1 "$(cut -d: -f2 "$dir/replication/address")"
wait_until "$deadline" redis_has_replicas redis 1
cut_link replication
two_hold promote
hosts_end

# Three of five servers give the first host the key. One of the three forgets it: with the two that were away it is a majority.
start_redises 5
hosts_begin
flock "$dir/A/warm" true
flock "$dir/B/warm" true
kill_redis redis4
kill_redis redis5
come_back() {
    restart_empty redis3
    rejoin_redis redis4
    rejoin_redis redis5
}
two_hold come_back
hosts_end
