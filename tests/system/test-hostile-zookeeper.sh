#!/bin/bash
# A server of ZooKeeper, or somebody on the way to it, changes answers: each kind of answer in each way that the client library
# and the daemon could stumble over, then bytes at random. The daemon closes such a connection and says why, lives on, and locks
# again as soon as the answers are right.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
mkdir "$dir/mangle"
port=$(free_port)
start mangle "$python" "$tests/system/mangle.py" "$port" "$(zookeeper_address)" "$dir/mangle"
wait_until "$deadline" test -e "$dir/mangle/ready"
cat >"$dir/files.ini" <<'END'
[mount]
directories = spool
[locks "spool"]
style = file
END
start_dlockfs B --config "$dir/files.ini" --session-timeout 10s
start_dlockfs A --config "$dir/files.ini" --session-timeout 10s --store "zookeeper://127.0.0.1:$port/dlockfs"
start work "$python" "$tests/system/busy_hosts.py" "$dir/A" "$dir/B"

lives() {
    alive A || fail "the daemon has died of: $what"
}

# Lets the change be made until so many answers were changed; then the daemon is to work again.
changed() { # TIMES
    lives
    [ "$(grep -cxF "$what" "$dir/mangle/done")" -ge "$1" ]
}
works() {
    lives
    timeout 4 flock "$dir/A/after" true
}
suffer() { # TIMES
    echo "$what" >"$dir/mangle/new"
    mv "$dir/mangle/new" "$dir/mangle/what"
    touch "$dir/mangle/break"
    # The rights of the root are looked at when it has changed.
    [[ $what != no-rights && $what != no-scheme ]] || zookeeper set /dlockfs $'dlockfs-names=2\n'
    wait_until "$deadline" changed "$1"
    rm "$dir/mangle/what"
    wait_until "$deadline" works
    echo "$what: after $(($(now_ms) - begin)) ms"
}

mapfile -t changes < <("$python" "$tests/system/mangle.py" --list)
begin=$(now_ms)
for what in "${changes[@]}"; do
    suffer 1
done
for what in "random "{1..2}; do
    suffer 15
done
finds -F 'sent what is not well-formed' "$dir/A.log" || fail "no word of it"
release work
