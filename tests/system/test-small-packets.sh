#!/bin/bash
# Servers that take no packet above 8 KiB (jute.maxbuffer): 200 waiters on as many locks keep their places over a restart of
# their daemon, connections that are closed while another one is to be had, a cut link, and a restart of the server; who holds
# what they wait for keeps it.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

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
    [ "$(count 'connection to .* lost')" -gt "$1" ] && is_status session connected
}

# lose LINK: its connection is closed, and it takes none for a moment.
lose() {
    local lost
    lost=$(count 'connection to .* lost')
    touch "$dir/$1/refuse"
    wait_until "$deadline" again "$lost"
    rm "$dir/$1/refuse"
}

start holders "$python" "$tests/system/many_queues.py" "$dir/B" 200
expect holders "200 granted"
start waiters "$python" "$tests/system/many_queues.py" "$dir/A" 200
expect waiters "all asked"
wait_until "$deadline" is_status waiters 200

send_signal A USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
wait_until "$deadline" is_status session connected
for link in one two one two; do
    lose $link
done
touch "$dir/two/refuse"
wait_until "$deadline" is_status session connected
lost=$(count 'connection to .* lost')
restart_zookeeper zk
wait_until "$deadline" again "$lost"
cut_link one
rm "$dir/two/refuse"
wait_until "$deadline" again $((lost + 1))
join_link one
wait_until "$deadline" is_status waiters 200

release holders
expect waiters "200 granted"
if grep 'giving it up\|expired\|lock lost' "$dir"/[AB].log; then
    fail "a session was lost"
fi
echo "connections lost: $(count 'connection to .* lost')"
