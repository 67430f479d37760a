#!/bin/bash
# The claim in front and a waiter's own vanish while the waiter's host is not connected, as when servers are set back, and
# have made up for it by the time the host is back. Then who waits is not granted by what is gone: it queues again.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lease.sh
. "$tests/system/lease.sh"
# shellcheck source=setback.sh
. "$tests/system/setback.sh"

suspended() {
    [ "$(status "$1" session)" = suspended ]
}

# vanish: a host waits for another one's lock, and the queue is emptied behind its back.
vanish() {
    local host
    start_proxy "link-$scheme"
    start_dlockfs "A-$scheme" --session-timeout 40s
    start_dlockfs "B-$scheme" --session-timeout 40s --store "$(proxied "link-$scheme")"
    for host in A B; do
        wait_until "$deadline" connected "$host-$scheme"
    done
    keep "holder-$scheme" "$dir/A-$scheme/job" flock
    wait_until "$deadline" granted "holder-$scheme"
    keep "waiter-$scheme" "$dir/B-$scheme/job" flock
    wait_claims job 2

    touch "$dir/link-$scheme/refuse"
    wait_until "$deadline" suspended "B-$scheme"
    empty_queue
    rm "$dir/link-$scheme/refuse"
    wait_until "$deadline" grep -q 'claim .* was taken away while it waited' "$dir/B-$scheme.log"
    wait_until "$deadline" granted "waiter-$scheme"
    wait_until "$deadline" fenced "holder-$scheme"
    wait_claims job 1
    not_fenced "waiter-$scheme"
    if grep 'its holder has lost the lock' "$dir/B-$scheme.log"; then
        violation "the waiter was granted the lock by a claim that was gone"
    fi
    if grep 'session.*lost\|lost.*session\|giving it up' "$dir/B-$scheme.log"; then
        fail "a session was lost"
    fi
    release "holder-$scheme" "waiter-$scheme"
}

scheme=zk
empty_queue() {
    zookeeper delete-claims /dlockfs/job
}
start_zookeeper
vanish

scheme=etcd
empty_queue() {
    etcd_ask etcd del --prefix /dlockfs/job/ >/dev/null
}
start_etcd
vanish
