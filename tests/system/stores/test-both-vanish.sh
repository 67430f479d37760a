#!/bin/bash
# The claim in front and a waiter's own vanish while the waiter's host is not connected, as when servers are set back, and
# have made up for it by the time the host is back; or while it is connected and looks away, the waiter's own first. Then who
# waits is not granted by what is gone: it queues again.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=setback.sh
. "$tests/system/stores/setback.sh"

suspended() {
    [ "$(status "$1" session)" = suspended ]
}

# wait_for_holder LOCK: host A holds the lock, and B waits for it.
wait_for_holder() {
    keep "holder-$1-$scheme" "$dir/A-$scheme/$1" flock
    wait_until "$deadline" granted "holder-$1-$scheme"
    keep "waiter-$1-$scheme" "$dir/B-$scheme/$1" flock
    wait_claims "$1" 2
}

# queued_again LOCK: both claims are gone, and both hosts know it.
queued_again() {
    wait_until "$deadline" grep -q "$1: claim .* was taken away while it waited" "$dir/B-$scheme.log"
    wait_until "$deadline" granted "waiter-$1-$scheme"
    wait_until "$deadline" fenced "holder-$1-$scheme"
    wait_claims "$1" 1
    not_fenced "waiter-$1-$scheme"
    if grep 'its holder has lost the lock' "$dir/B-$scheme.log"; then
        violation "the waiter was granted the lock by a claim that was gone"
    fi
    release "holder-$1-$scheme" "waiter-$1-$scheme"
}

# What a host knows of a lock is kept as long as a file is open with which it was locked.
keep_open='
import fcntl, signal, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.flock(file, fcntl.LOCK_UN)
print("open")
signal.pause()
'

# vanish: a host waits for another one's lock, and the queue is emptied behind its back.
vanish() {
    local host
    start_proxy "link-$scheme"
    start_dlockfs "A-$scheme" --session-timeout 40s
    start_dlockfs "B-$scheme" --session-timeout 40s --store "$(proxied "link-$scheme")"
    for host in A B; do
        wait_until "$deadline" connected "$host-$scheme"
    done
    wait_for_holder apart
    touch "$dir/link-$scheme/refuse"
    wait_until "$deadline" suspended "B-$scheme"
    empty_queue apart
    rm "$dir/link-$scheme/refuse"
    queued_again apart

    wait_for_holder away
    suspend "B-$scheme"
    empty_queue away
    awake "B-$scheme"
    queued_again away

    # The host has met this one other host, and watches the queue as a whole.
    start "opened-$scheme" "$python" -u -c "$keep_open" "$dir/B-$scheme/turns"
    expect "opened-$scheme" open
    wait_for_holder turns
    release "holder-turns-$scheme" "waiter-turns-$scheme"
    wait_claims turns 0
    wait_for_holder turns
    suspend "B-$scheme"
    empty_queue turns
    awake "B-$scheme"
    queued_again turns
    release "opened-$scheme"
    if grep 'session.*lost\|lost.*session\|giving it up' "$dir/B-$scheme.log"; then
        fail "a session was lost"
    fi
}

scheme=zk
empty_queue() { # LOCK
    zookeeper claims "/dlockfs/$1" | tac | while read -r claim; do
        zookeeper delete "/dlockfs/$1/$claim"
    done
}
start_zookeeper
vanish

scheme=etcd
empty_queue() { # LOCK
    etcd_ask etcd del --prefix "/dlockfs/$1/" >/dev/null
}
start_etcd
vanish
