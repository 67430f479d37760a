#!/bin/bash
# A server of ZooKeeper, or somebody on the way to it, changes answers: each kind of answer in each way that the client library
# and the daemon could stumble over, then bytes at random. The daemon closes such a connection and says why, lives on, and locks
# again as soon as the answers are right.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=hostile.sh
. "$tests/system/stores/hostile.sh"

start_zookeeper
start_mangle "$tests/system/stores/mangle.py" "$(zookeeper_address)"
cat >"$dir/files.ini" <<'END'
[mount]
directories = spool
[locks "spool"]
style = file
END
start_dlockfs B --config "$dir/files.ini" --session-timeout 10s
start_dlockfs A --config "$dir/files.ini" --session-timeout 10s --store "zookeeper://$link_address/dlockfs"
start work "$python" "$tests/system/stores/busy_hosts.py" "$dir/A" "$dir/B"

suffer() { # TIMES
    mangle_begin
    # The rights of the root are looked at when it has changed.
    [[ $what != no-rights && $what != no-scheme ]] || zookeeper set /dlockfs $'dlockfs-names=2\n'
    mangle_end "$1"
}

mapfile -t changes < <("$python" "$tests/system/stores/mangle.py" --list)
for what in "${changes[@]}"; do
    suffer 1
done
for what in "random "{1..2}; do
    suffer 15
done
finds -F 'sent what is not well-formed' "$dir/A.log" || fail "no word of it"
release work
