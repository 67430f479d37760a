#!/bin/bash
# Two stores on the same servers, each with a session of its own. The connection of one of them hangs: that one is given up, the
# other stays.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_zookeeper
start_proxy link
address=$(<"$dir/link/address")
cat >"$dir/A.ini" <<END
[store]
url = zookeeper://$address,$address/first
session_timeout = 12s
[store "second"]
url = zookeeper://$address,$address/second
session_timeout = 12s
[mount]
directories = second
END
store=zookeeper://$address,$address/first
lines() { # TEXT
    grep -c "$1" "$dir/A.log" || true
}
are() { # NUMBER TEXT
    [ "$(lines "$2")" -eq "$1" ]
}

start_dlockfs A --config "$dir/A.ini"
wait_until "$deadline" are 2 'connected to ZooKeeper at'
keep first "$dir/A/job" flock
keep second "$dir/A/second/job" flock
wait_until "$deadline" granted first
wait_until "$deadline" granted second
for hanging in 1 2 3; do
    expect_equal "connections" $((hanging + 1)) "$(wc -l <"$dir/link/connections")"
    touch "$dir/link/hang-$hanging"
    wait_until "$deadline" are $((hanging + 2)) 'connected to ZooKeeper at'
    expect_equal "connections lost" "$hanging" "$(lines 'connection to ZooKeeper at .* lost')"
    expect_equal "connections made" $((hanging + 2)) "$(lines 'connected to ZooKeeper at')"
done
not_fenced first
not_fenced second
release first second
