#!/bin/bash
# Hosts whose clocks run slow or fast against those of the servers (skewed_clock.c), by as much as the margin of a lease allows, are
# cut off: no call of their holders succeeds that began after the waiter on another host was granted the lock, on ZooKeeper and on
# etcd. The clock of one more host runs at half the speed. Its holder is told too late, so the clocks are wrong indeed. But hosts whose
# clocks are slewed to half the speed, as NTP does it, know better: holders are told in time, by the daemon, or by its guard where the
# daemon is stopped at the cut.
#
# From the environment: RATES, clocks to try instead, of which is only printed how it went; TIMEOUT, the session timeout in seconds.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

preload=$build/tests/system/skewed_clock.so
requires test -e "$preload"
requires type -P etcd
timeout_s=${TIMEOUT:-20}
beyond=0.5
read -ra rates <<<"${RATES:-0.98 1.02 $beyond 0.5slewed 0.5slewed-stopped}"

# hold_at RATE: on a host with such a clock, against a waiter on host B.
hold_at() {
    # A sanitizer minds whatever is loaded before it.
    LD_PRELOAD=$preload TEST_CLOCK_RATE=$1 ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
        launch_dlockfs "A$1" --session-timeout "${timeout_s}s" --store "$(proxied link)"
    wait_until "$deadline" mount_settled "A$1"
    keep "holder$1" "$dir/A$1/lock$1" flock
    wait_until "$deadline" granted "holder$1"
    keep "rival$1" "$dir/B/lock$1" flock
    wait_claims "lock$1" 2
}

# told_by_guard HOLDER RIVAL: the holder had the lock no more, whatever its calls failed with.
told_by_guard() {
    local last grant
    last=$(awk '$1 == "fenced" { print $3; exit }' "$dir/$1.out")
    grant=$(time_of "$2" granted)
    [ "$last" -lt "$grant" ] || violation "two held one lock for $((last - grant)) ms"
    [ "$(time_of "$1" fenced)" -le "$grant" ] || fail "$2 was granted the lock before $1 was told"
}

# print_order CUT RATE
print_order() {
    local told granted
    wait_until "$deadline" granted "rival$2"
    wait_until "$deadline" fenced "holder$2"
    told=$(time_of "holder$2" fenced)
    granted=$(time_of "rival$2" granted)
    echo "${store%%:*}, T = $timeout_s s, a clock at $2: told $((told - $1)) ms after the cut, $((granted - told)) ms before another one was granted the lock"
}

# cut_off: all hosts at the same time.
cut_off() {
    local rate cut
    start_proxy link
    start_dlockfs B --session-timeout "${timeout_s}s"
    for rate in "${rates[@]}"; do
        hold_at "$rate"
    done
    sleep $((timeout_s / 2)) # there are as many signs and proofs as there get
    cut=$(lease now)
    cut_link link
    for rate in "${rates[@]}"; do
        [[ $rate != *stopped ]] || pause "A$rate"
    done
    for rate in "${rates[@]}"; do
        print_order "$cut" "$rate"
        [ -z "${RATES:-}" ] || continue
        if [ "$rate" = $beyond ]; then
            [ "$(time_of "holder$rate" fenced)" -gt "$(time_of "rival$rate" granted)" ] || fail "a clock is not as wrong as it should be"
        elif [[ $rate = *stopped ]]; then
            told_by_guard "holder$rate" "rival$rate"
        else
            fenced_first "$cut" "holder$rate" "rival$rate"
        fi
    done
    join_link link
    release "${rates[@]/#/holder}" "${rates[@]/#/rival}"
    for rate in "${rates[@]}"; do
        if [[ $rate = *stopped ]]; then
            wait_until "$deadline" gone "A$rate"
            finish "A$rate" 2>/dev/null || true
            forget_host "A$rate"
        else
            stop_dlockfs "A$rate"
        fi
    done
    stop_dlockfs B
    release link
}

on_zookeeper() {
    start_zookeeper
    cut_off
}

on_etcd() {
    start_etcd
    cut_off
}

scene zookeeper on_zookeeper
scene etcd on_etcd
scenes_end
