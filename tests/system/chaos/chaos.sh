# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# What the tests by chaos.py share; sourced after functions.sh. The daemons of the hosts A, B and C read chaos.ini; claims of
# some names go on among the callers of a host, and are kept.

printf '%s\n' '[locks "delta"]' 'handoff = 1' 'keep = 1s' '[locks "ember"]' 'handoff = 3' 'keep = 1s' \
    '[locks "fjord"]' 'handoff = 100' >"$dir/chaos.ini"

chaos() {
    "$python" "$tests/system/chaos/chaos.py" "$@"
}

# tell_fault WHAT FAULT TARGET: writes down that it was done now, by the workers' clock.
tell_fault() {
    local clock
    read -r clock _ </proc/uptime
    echo "$clock $*" >>"$dir/faults"
}

# faults_over: waits until the test has done all that it does beside the plan; for the tests to define.
faults_over() {
    :
}

# follow_plan SEED: carries $dir/plan out by `fault_begin FAULT TARGET` and `fault_end FAULT TARGET` of the caller, while the
# workers run, and writes down when each was done.
follow_plan() {
    local begin at what fault target
    begin=$(now_ms)
    while read -r -u 3 at what fault target; do
        while [ $(($(now_ms) - begin)) -lt "$at" ]; do
            alive workers || fail "seed $1: $(tail -n 5 "$dir/workers.out")"
            read -r -t 0.02 -u "$nothing" || true # a pause without a process
        done
        "fault_$what" "$fault" "$target"
        tell_fault "$what" "$fault" "$target"
    done 3<"$dir/plan"
}

# worst FILE: what a check has found, in one line: its first violation with the calls, or what it said last.
worst() {
    { grep -m 1 -A 2 '^VIOLATION' "$1" || tail -n 1 "$1"; } | paste -sd' '
}

# run_chaos SEED PROCESSES CHECK [SERVER-FAULT...]: so many processes on each host take locks while the plan is followed. In the
# end everybody gets every lock; chaos.py finds nothing wrong in what they wrote down, by the command CHECK; no claim is left over.
run_chaos() {
    local lost name found=0
    start workers "$python" "$tests/system/chaos/chaos.py" work "$1" "$2" "$dir/records" "$dir/faults" "$dir/calm" \
        "$dir/A" "$dir/B" "$dir/C"
    follow_plan "$1"
    go calm
    finish workers 150 || fail "seed $1: $(tail -n 5 "$dir/workers.out")"
    cat "$dir/workers.out"
    faults_over
    lost=$(cat "$dir/"[ABC].log | grep -c 'giving it up\|has expired\|etcd lease .* is over' || true)
    chaos "$3" "$dir/records" "$dir/faults" "$lost" "${@:4}" >"$dir/found" 2>&1 || found=$?
    cat "$dir/found"
    [ "$found" -eq 0 ] || fail "seed $1: $(worst "$dir/found")"
    for name in anvil brook cedar delta ember fjord grove-A grove-B grove-C; do
        wait_claims "$name" 0
    done
}
