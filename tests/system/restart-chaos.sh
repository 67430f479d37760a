# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Processes on three hosts take locks of all kinds on a few names, as in test-chaos.sh, while their daemons are replaced.
# Nobody ever loses a lock or the mount, and no session ends; from what the processes wrote down, no two ever held what
# conflicts, tokens grew, and no claim is left over. Sourced after functions.sh.
#
# From the environment: SEED; DURATION, for how many seconds.

# restart_chaos START FAULT...: with `START HOST OPTION...` for each host, and `inject FAULT HOST` of the caller.
restart_chaos() {
    local start=$1 seed=${SEED:-$RANDOM} duration=${DURATION:-8} host begin at what fault target clock lost taken name
    local chaos=("$python" "$tests/system/chaos.py")
    shift
    echo "seed: $seed, $duration s of faults"
    printf '%s\n' '[locks "delta"]' 'handoff = 1' 'keep = 1s' '[locks "ember"]' 'handoff = 3' 'keep = 1s' \
        '[locks "fjord"]' 'handoff = 100' >"$dir/hosts.ini"
    start_zookeeper
    for host in A B C; do
        "$start" "$host" --session-timeout 40s --config "$dir/hosts.ini"
    done
    "${chaos[@]}" plan-restarts "$seed" "$duration" "$@" >"$dir/plan"
    start workers "${chaos[@]}" work "$seed" 5 "$dir/records" "$dir/faults" "$dir/calm" "$dir/A" "$dir/B" "$dir/C"

    begin=$(now_ms)
    while read -r -u 3 at what fault target; do
        while [ $(($(now_ms) - begin)) -lt "$at" ]; do
            alive workers || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
            sleep 0.02
        done
        [ "$what" = end ] || inject "$fault" "$target"
        read -r clock _ </proc/uptime
        echo "$clock $what $fault $target" >>"$dir/faults"
    done 3<"$dir/plan"
    go calm
    finish workers 150 || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
    cat "$dir/workers.out"
    lost=$(cat "$dir/"[ABC].log | grep -c 'giving it up\|has expired' || true)
    "${chaos[@]}" check-restarts "$dir/records" "$dir/faults" "$lost" || fail "seed $seed"
    taken=$(cat "$dir/"[ABC].log | grep -c ' goes on with version ')
    [ "$taken" -ge 10 ] || fail "seed $seed: only $taken programs have gone on"
    # One that is not run for seconds may be too late; the other goes on then.
    if grep 'beginning anew\|does not take over\|not kept' "$dir/"[ABC].log | grep -v 'has not shown in time'; then
        fail "seed $seed: a program has not gone on"
    fi
    for name in anvil brook cedar delta ember fjord; do
        wait_claims "$name" 0
    done
}
