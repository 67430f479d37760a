#!/bin/bash
# Names of lock files that another host takes away (style = file): the host that had made them hears of it from the store. Its next heartbeat,
# which would tell, too, comes only after 75 seconds here, an eighth of the session timeout.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

soon=30 # seconds
"start_${STORE:-zookeeper}"
files_config A
files_config B 'steal = no'
start_dlockfs A --config "$dir/A.ini" --session-timeout 600s
start_kept B --config "$dir/B.ini" --session-timeout 600s

requests() { # HOST OPERATION: of the store, so far
    sed -n "s/^dlockfs_store_operation_seconds_count{operation=\"$2\"} //p" "$dir/$1/.dlockfs/metrics"
}
# made COMMAND...: B makes a name by that, which is watched then.
made() {
    local before
    before=$(requests B watch)
    at B "$@"
    wait_until "$deadline" watches_more "$before"
}
watches_more() {
    [ "$(requests B watch)" -gt "$1" ]
}
told() { # NAME TIMES: B was, so often
    [ "$(grep -c "files/$1: lock file taken away, or replaced, by another host" "$dir/B.log")" -ge "$2" ]
}

# Whoever has looked and found the name gone can make it anew.
at B mkdir job
at A rmdir job
no_file B job || fail "job was removed on A, B finds it"
at B mkdir job || fail "job was removed on A, B cannot make it"
at B rmdir job

# What does not live for long is not watched: it takes five requests, with the list of the directory.
before=$(requests B watch)
others=$(($(requests B alter) + $(requests B read) + $(requests B files)))
for ((i = 0; i < 20; i++)); do
    at B sh -c 'mkdir brief && rmdir brief'
done
echo "20 brief names: $(($(requests B watch) - before)) watches, $(($(requests B alter) + $(requests B read) + $(requests B files) - others)) other requests"
[ "$(($(requests B watch) - before))" -lt 20 ] || fail "each name is watched, though none lives for long"

# What does is watched, and B hears of its removal though nobody there looks.
made mkdir job
made sh -c ': >lock'
at A rmdir job
at A rm lock
wait_until "$soon" told job 2
wait_until "$soon" told lock 1
expect_equal "files of B" files=0 "$(grep ^files= "$dir/B/.dlockfs/status")"
at B mkdir job || fail "job was removed on A, B cannot make it"
at B rmdir job

# What has been made anew by A is A's, and B may not take that away.
made sh -c ': >lock'
at A rm lock
claim_at A lock || fail "A cannot make lock"
wait_until "$soon" told lock 2
fails_at B "not permitted" rm lock
at A test -e lock || fail "B has removed the file of A"

# The same with rename, which replaces it in one step.
made sh -c ': >state'
at A sh -c 'echo new >other; mv other state'
wait_until "$soon" told state 1
fails_at B "not permitted" rm state
says_at B new cat state

# The next process of the daemon watches what it has taken over.
made mkdir job
before=$(gone_on B)
send_signal B USR2
wait_until "$deadline" gone_on_more B "$before"
wait_until "$deadline" watches_more 0
at A rmdir job
wait_until "$soon" told job 3
at B mkdir job
at B rmdir job
