#!/bin/bash
# Of two servers, and of four, one that accepts connections and says nothing is left for another one, whichever it is, and not
# tried again before that; and a host finds one that answers, whichever does not when it starts.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

timeout=12

# server_of_A: the link through which the daemon was connected last.
server_of_A() {
    local link address
    address=$(sed -n 's/.*connected to ZooKeeper at \([^,]*\),.*/\1/p' "$dir/A.log" | tail -n 1)
    for link in "${links[@]}"; do
        [ "$(<"$dir/$link/address")" != "$address" ] || echo "$link"
    done
}

connections() { # of the daemon
    grep -c 'connected to ZooKeeper' "$dir/A.log" || true
}

# first_since MS: the link through which a connection was asked for first since then.
first_since() {
    local link
    for link in "${links[@]}"; do
        awk -v begin="$1" -v link="$link" '$2 >= begin { print $2, link; exit }' "$dir/$link/connections"
    done | sort -n | sed -n '1s/.* //p'
}

has_connected() { # TIMES
    [ "$(connections)" -ge "$1" ]
}

of_servers() { # COUNT
    local count=$1 number list link times begin round
    links=()
    list=""
    for ((number = 1; number <= count; number++)); do
        links+=("link-$number")
        start_proxy "link-$number"
        list+=${list:+,}$(<"$dir/link-$number/address")
    done
    store=zookeeper://$list/dlockfs

    : >"$dir/A.log"
    start_dlockfs A --session-timeout ${timeout}s
    keep holder "$dir/A/of-$count" flock
    wait_until "$deadline" granted holder
    for ((round = 1; round <= 2 * count; round++)); do
        link=$(server_of_A)
        times=$(connections)
        begin=$(now_ms)
        cut_link "$link"
        wait_until "$deadline" has_connected $((times + 1))
        echo "$link of $count hangs: elsewhere after $(($(now_ms) - begin)) ms"
        [ "$(server_of_A)" != "$link" ] || fail "still at $link"
        [ "$(first_since "$begin")" != "$link" ] || fail "$link is tried again first"
        not_fenced holder
        join_link "$link"
    done
    release holder
    stop_dlockfs A

    for link in "${links[@]}"; do
        cut_link "$link"
        : >"$dir/A.log"
        start_dlockfs A --session-timeout 3s
        wait_until "$deadline" has_connected 1
        stop_dlockfs A
        join_link "$link"
    done
}

start_zookeeper
scene two of_servers 2
scene four of_servers 4
scenes_end
