#!/bin/bash
# A link that drops all packets for a while costs no lock, though TCP itself uses it again only much later: hosts that hold a lock each
# keep it over one outage of 0.6 of the session timeout, and over several of a quarter with as much link between; with both stores.
#
# The rival on this side of the link waits for a lock all the time: what is kept must also be kept from him.

if [ "${IN_NAMESPACE:-}" != yes ]; then
    unshare --net true 2>/dev/null || { [ "${CI:-}" != true ] && echo "skipped: requires: unshare --net" && exit 77; }
    IN_NAMESPACE=yes exec unshare --net -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/link.sh
. "$tests/lib/link.sh"

timeout_ms=8000 # what is left between an outage of 0.6 T and the end of the lease is a hundredth of that
busy_ms=50      # a machine that stands still for longer shows nothing
hosts_each=2

# outages TIMES AWAY-MS LINK-MS: the link is dead so many times. Says for how long it was at most, by the clock.
outages() {
    local i from now longest=0
    for ((i = 0; i < $1; i++)); do
        from=$(now_ms)
        kill_link
        pause_ms "$2"
        heal_link
        now=$(now_ms)
        longest=$((now - from > longest ? now - from : longest))
        pause_ms "$3"
    done
    echo "$longest"
}

# A test of what is survived says nothing where the machine itself was away for longer: once more then.
# survives WHAT TIMES AWAY-MS LINK-MS
survives() {
    local what=$1 longest lost stalled
    for _ in 1 2 3; do
        hold_all
        : >"$dir/stalls"
        longest=$(outages "${@:2}")
        pause_ms $((timeout_ms / 2))
        lost=$(grep -c '^lost' "$dir/holders.out" || true)
        stalled=$(sort -n "$dir/stalls" | tail -n 1)
        release holders
        echo "$what, outages of at most $longest ms: lost $lost of ${#files[@]}; the machine stood still for ${stalled:-0} ms at most"
        [ "$lost" -gt 0 ] || return 0
        [ "${stalled:-0}" -gt "$busy_ms" ] || [ "$longest" -gt $(($3 + busy_ms)) ] || fail "$what: $lost locks lost"
    done
    skip "the machine is too busy for what is measured here"
}

hold_all() {
    start holders "$python" -u "$tests/lib/holders.py" "${files[@]}"
    expect holders held
    pause_ms $((timeout_ms / 2)) # until the lease is as long as it gets
}

start_link
start_far_zookeeper 3
stores=("$store")
start_far_etcd 1
stores+=("$store")
files=()
for store in "${stores[@]}"; do
    for ((i = 1; i <= hosts_each; i++)); do
        start_dlockfs "${store%%:*}-$i" --session-timeout "${timeout_ms}ms"
        files+=("$dir/${store%%:*}-$i/lock-$i")
    done
done
start stalls "$python" -u "$tests/system/lease/stall_clock.py" "$dir/stalls"

survives "one outage of 0.6 T" 1 $((timeout_ms * 6 / 10)) 0
survives "outages of 0.25 T" 5 $((timeout_ms / 4)) $((timeout_ms / 4))
