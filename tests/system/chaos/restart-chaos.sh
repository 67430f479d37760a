# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Processes on three hosts take locks of all kinds on a few names, as in test-chaos.sh, while their daemons are replaced.
# Nobody ever loses a lock or the mount, and no session ends; from what the processes wrote down, no two ever held what
# conflicts, tokens grew, and no claim is left over. Sourced after functions.sh.
#
# From the environment: SEED; DURATION, for how many seconds.

# shellcheck source=chaos.sh
. "$tests/system/chaos/chaos.sh"

# restart_chaos START FAULT...: with `START HOST OPTION...` for each host, and `fault_begin FAULT HOST` of the caller.
restart_chaos() {
    local start=$1 seed=${SEED:-$RANDOM} duration=${DURATION:-8} host taken
    shift
    echo "seed: $seed, $duration s of faults"
    start_zookeeper
    for host in A B C; do
        "$start" "$host" --session-timeout 40s --config "$dir/chaos.ini"
    done
    chaos plan-restarts "$seed" "$duration" "$@" >"$dir/plan"
    run_chaos "$seed" 5 check-unnoticed
    taken=$(cat "$dir/"[ABC].log | grep -c ' goes on with version ')
    [ "$taken" -ge 10 ] || fail "seed $seed: only $taken programs have gone on"
    # One that is not run for seconds may be too late; the other goes on then.
    if grep 'beginning anew\|does not take over\|not kept' "$dir/"[ABC].log | grep -v 'has not shown in time'; then
        fail "seed $seed: a program has not gone on"
    fi
}

fault_end() {
    : # each is over at once
}
