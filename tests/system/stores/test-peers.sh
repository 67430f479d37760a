#!/bin/bash
# Hosts with peers tell each other of releases: a lock goes on while ZooKeeper says nothing, one way and back, also after a
# restart and a reload; who is not reached is named, and waits for the servers; what a stranger sends is counted.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

metric() { # HOST NAME
    sed -n "s/^$2 //p" "$dir/$1/.dlockfs/metrics"
}

# heard HOST KIND COUNT: so many packets of that kind have come, at least.
heard() {
    [ "$(metric "$1" "dlockfs_peer_packets_total{kind=\"$2\",way=\"received\"}")" -ge "$3" ]
}

waits() { # HOST
    [ "$(metric "$1" dlockfs_waiters)" -eq 1 ]
}

# hand_over FROM TO: a lock, of which the servers cannot say that it was released.
hand_over() {
    local asks
    asks=$(metric "$1" 'dlockfs_peer_packets_total{kind="ask",way="received"}')
    hold holder "$dir/$1/lock"
    expect holder held
    hold waiter "$dir/$2/lock"
    wait_until "$deadline" heard "$1" ask $((asks + 1))
    pause zk
    release holder
    expect waiter held
    resume zk
    release waiter
}

start_zookeeper
port=$(free_port)
printf '[mount]\npeers = 127.0.0.1:%s\n' "$port" >"$dir/A.ini"
start_dlockfs A --config "$dir/A.ini"
start_dlockfs B -o "peers=127.0.0.2:$port"
grep -qx "peers=127.0.0.1:$port" "$dir/A/.dlockfs/status" || fail "$(<"$dir/A/.dlockfs/status")"

hand_over A B
hand_over B A
grep -qx peers_answer=1 "$dir/B/.dlockfs/status" || fail "$(<"$dir/B/.dlockfs/status")"
expect_equal "grants by message" 1 "$(metric B dlockfs_grants_by_message_total)"
grep -qx by_message=1 "$dir/A/.dlockfs/status" || fail "$(<"$dir/A/.dlockfs/status")"

# Another process of A listens at once.
send_signal A USR2
wait_until "$deadline" grep -q "goes on with version" "$dir/A.log"
hand_over A B
hand_over B A

# What a stranger sends: nothing, and what looks like a packet.
"$python" - "$port" <<'END'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for packet in b"", b"x" * 2000, b"dlkp\1\3\0\0" + bytes(56):
    s.sendto(packet, ("127.0.0.1", int(sys.argv[1])))
END
dropped() {
    [ "$(metric A "dlockfs_peer_dropped_total{reason=\"$1\"}")" -eq "$2" ]
}
wait_until "$deadline" dropped malformed 2
wait_until "$deadline" dropped unsealed 1

# A listens no more, while its claim still says so: B asks in vain, and is told by the servers.
hold holder "$dir/A/lock"
expect holder held
: >"$dir/A.ini"
send_signal A HUP
wait_until "$deadline" grep -q "read anew" "$dir/A.log"
refused grep '^peers' "$dir/A/.dlockfs/status"
hold waiter "$dir/B/lock"
wait_until "$deadline" waits B
release holder
expect waiter held
release waiter
