#!/bin/bash
# Of several servers, one that does not answer costs no lock: the daemon turns to another one in time. And it finds the only
# one that lives, whatever its place in the list.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

zookeeper_configuration=syncLimit=50 # a server that is stopped for seconds is to stay one of them
start_ensemble 3
leader=$(zookeeper_leader 3)
zookeeper_name=$leader
# server_of_A: the one that its daemon was connected to last.
server_of_A() {
    local address name
    address=$(sed -n 's/.*connected to ZooKeeper at \([^,]*\),.*/\1/p' "$dir/A.log" | tail -n 1)
    for name in zk1 zk2 zk3; do
        [ "$(zookeeper_address "$name")" != "$address" ] || echo "$name"
    done
}

# At a follower: when the leader stands still, all do.
start_dlockfs A --session-timeout 16s
for _ in {1..20}; do
    wait_until "$deadline" grep -q 'connected to ZooKeeper' "$dir/A.log"
    [ "$(server_of_A)" = "$leader" ] || break
    stop_dlockfs A
    : >"$dir/A.log"
    start_dlockfs A --session-timeout 16s
done
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
call waiter "$dir/A/job" open ex hold
wait_claims job 2

# The server that it is at is paused, for longer than a session lives; then the next one, if that is a follower, too.
for time in 1 2; do
    server=$(server_of_A)
    if [ "$server" = "$leader" ]; then
        [ "$time" -eq 2 ] || fail "twenty times at the leader"
        break
    fi
    connections=$(grep -c 'connected to ZooKeeper' "$dir/A.log")
    pause "$server"
    sleep 17
    not_fenced holder
    if said waiter "ex ok"; then
        fail "the waiter got what is held"
    fi
    [ "$(grep -c 'connected to ZooKeeper' "$dir/A.log")" -gt "$connections" ] || fail "still at $server"
    resume "$server"
    wait_until "$deadline" zookeeper_serves "$server"
    zookeeper_name=$server zookeeper make "/back$time" # it takes part again
done
release holder
expect waiter "ex ok"
release waiter
stop_dlockfs A

# One that lives, among others that refuse connections; the link to it breaks and comes back.
lines() { # TEXT
    grep -c "$1" "$dir/B.log" || true
}
more() { # TEXT NUMBER
    [ "$(lines "$1")" -gt "$2" ]
}
start_proxy link zk1
address=$(proxied link)
address=${address#zookeeper://}
address=${address%%/*}
dead=127.0.0.1:1
for list in "$address,$dead" "$dead,$dead,$dead,$address"; do
    start_dlockfs B --session-timeout 30s --store "zookeeper://$list/dlockfs"
    call holder "$dir/B/job" open ex hold
    expect holder "ex ok"
    for _ in 1 2; do
        connections=$(lines 'connected to ZooKeeper')
        breaks=$(lines 'connection to ZooKeeper .* lost')
        touch "$dir/link/refuse"
        wait_until "$deadline" more 'connection to ZooKeeper .* lost' "$breaks"
        rm "$dir/link/refuse"
        wait_until "$deadline" more 'connected to ZooKeeper' "$connections"
    done
    release holder
    stop_dlockfs B
done
