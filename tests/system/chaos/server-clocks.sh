# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what functions.sh reads and sets
# The clocks of servers are stepped (stepped_clock.c), and those of the hosts are not. Sourced after functions.sh, before the
# servers are started. For its service the caller has clock_of SERVER: the seconds since 1970 that it shows its clients.

# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=chaos.sh
. "$tests/system/chaos/chaos.sh"

stepped_clock=$build/tests/system/stepped_clock
requires test -x "$stepped_clock"
servers_under=("$stepped_clock" run)

# step SERVER SECONDS [SECONDS]: by how much its wall clock, and its monotonic clock, are ahead from now on.
step() {
    "$stepped_clock" set "$(pid "$1")" "$2" "${3:-0}"
}

# clock_is_stepped SERVER: what its clients see steps, ahead and back.
clock_is_stepped() {
    local seconds off
    for seconds in 3600 -3600 0; do
        step "$1" "$seconds"
        off=$(($(clock_of "$1") - EPOCHSECONDS - seconds))
        if [ "$off" -lt -300 ] || [ "$off" -gt 300 ]; then
            fail "the clock of $1 is ahead by $((seconds + off)) s instead of $seconds s"
        fi
    done
}

# plan_steps: of wall clocks, for chaos.sh.
plan_steps() {
    local at=300 seconds who
    for who in leader followers all; do
        for seconds in 3600 -3600 10 -10 10 -10 0; do
            echo "$at begin clock$seconds $who"
            at=$((at + 300))
        done
    done
}

fault_begin() { # clockSECONDS leader|followers|all
    local server
    for server in "${servers[@]}"; do
        case $2 in
            leader) [ "$server" = "$leader" ] || continue ;;
            followers) [ "$server" != "$leader" ] || continue ;;
        esac
        step "$server" "${1#clock}"
    done
}

# nobody_notices LEADER SERVER...: processes on three hosts take locks of all kinds on a few names while the servers' wall clocks are
# stepped. Nobody loses a lock, and no session ends. From what the processes wrote down, no two ever held what conflicts, and tokens
# grew. In the end everybody gets every lock.
#
# From the environment: SEED.
nobody_notices() {
    local host seed=${SEED:-$RANDOM}
    leader=$1
    servers=("${@:2}")
    echo "seed: $seed"
    for host in A B C; do
        start_dlockfs "$host" --session-timeout 40s --config "$dir/chaos.ini"
    done
    plan_steps >"$dir/plan"
    run_chaos "$seed" 3 check-unnoticed
    for host in A B C; do
        stop_dlockfs "$host"
    done
}

# hold_against KIND...: for each kind, holder-KIND on host D has the lock KIND, and rival-KIND on host E waits for it.
hold_against() {
    local kind
    for kind; do
        keep "holder-$kind" "$dir/D/$kind" "$kind"
        wait_until "$deadline" granted "holder-$kind"
        keep "rival-$kind" "$dir/E/$kind" "$kind"
        wait_claims "$kind" 2
    done
}

# let_go KIND...: both of them.
let_go() {
    local kind
    for kind; do
        not_fenced "rival-$kind"
        never_revived "holder-$kind"
        release "holder-$kind" "rival-$kind"
        wait_claims "$kind" 0
    done
}

# fenced_in_time SERVER: host D, whose only server that is, is cut off, and then that server's wall clock is stepped, ahead or back.
# The holders of D are fenced before the waiters on host E are granted.
fenced_in_time() {
    local kind seconds cut
    start_proxy near "$1"
    start_dlockfs D --session-timeout 4s --store "$(proxied near)"
    start_dlockfs E --session-timeout 300s
    for seconds in 3600 -3; do
        comes_free "$dir/D/flock"
        hold_against flock excl
        cut=$(lease now)
        cut_link near
        step "$1" "$seconds"
        echo "cut off, and the leader's clock steps by $seconds s:"
        for kind in flock excl; do
            fenced_first "$cut" "holder-$kind" "rival-$kind"
        done
        join_link near
        step "$1" 0
        let_go flock excl
    done
    comes_free "$dir/D/flock"
}
