#!/bin/bash
# Servers that take no packet above 8 KiB (jute.maxbuffer): 200 waiters on as many locks keep their places over a restart of
# their daemon, connections that are closed while another one is to be had, a cut link, and a restart of the server; who holds
# what they wait for keeps it.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

zookeeper_options=(-Djute.maxbuffer=8192)
start_zookeeper
start_proxy one
start_proxy two
start_dlockfs A --session-timeout 30s --store "$(proxied one two)"
start_dlockfs B --session-timeout 30s

is_status() {
    grep -qx "$1=$2" "$dir/A/.dlockfs/status"
}

count() {
    grep -c "$1" "$dir/A.log" || true
}

# again COUNT: the daemon of A has lost more connections than so many, and has one.
again() {
    [ "$(count 'connection to .* lost')" -gt "$1" ] && connected
}

# connected: the latest that the log tells is a connection.
connected() {
    grep 'connected to ZooKeeper at\|connection to .* lost\| goes on with version ' "$dir/A.log" | tail -n 1 | grep -q 'connected to'
}

# used: the link of A's latest connection.
used() {
    local address link
    address=$(sed -n 's/.*connected to ZooKeeper at \(.*\), session.*/\1/p' "$dir/A.log" | tail -n 1)
    for link in one two; do
        if [ "$address" = "$(<"$dir/$link/address")" ]; then
            echo "$link"
        fi
    done
}

# lose: A's connection is closed, and its link takes none for a moment.
lose() {
    local lost link
    lost=$(count 'connection to .* lost')
    link=$(used)
    touch "$dir/$link/refuse"
    wait_until "$deadline" again "$lost"
    rm "$dir/$link/refuse"
}

start holders "$python" "$tests/system/stores/zookeeper/many_queues.py" "$dir/B" 200
expect holders "200 granted"
start waiters "$python" "$tests/system/stores/zookeeper/many_queues.py" "$dir/A" 200
expect waiters "all asked"
wait_until "$deadline" is_status waiters 200

send_signal A USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
wait_until "$deadline" connected
for _ in 1 2 3 4; do
    lose
done
lost=$(count 'connection to .* lost')
restart_zookeeper zk
wait_until "$deadline" again "$lost"
link=$(used)
lost=$(count 'connection to .* lost')
cut_link "$link"
wait_until "$deadline" again "$lost"
join_link "$link"
wait_until "$deadline" is_status waiters 200

release holders
expect waiters "200 granted"
if grep 'giving it up\|expired\|lock lost' "$dir"/[AB].log; then
    fail "a session was lost"
fi
# Six were taken away from A; with packets that the server refuses there is no end of it.
lost=$(count 'connection to .* lost')
echo "connections lost: $lost"
[ "$lost" -le 12 ] || fail "$lost connections were lost"
