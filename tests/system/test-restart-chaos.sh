#!/bin/bash
# Processes on three hosts take locks of all kinds on a few names, as in test-chaos.sh, while the daemons are replaced again
# and again by the program that they were started from (SIGUSR2). Nobody ever loses a lock or the mount, and no session ends;
# from what the processes wrote down, no two ever held what conflicts, and tokens grew.
#
# From the environment: SEED; DURATION, for how many seconds.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

seed=${SEED:-$RANDOM}
duration=${DURATION:-8}
echo "seed: $seed, $duration s of restarts"
printf '%s\n' '[locks "delta"]' 'handoff = 1' 'keep = 1s' '[locks "ember"]' 'handoff = 3' 'keep = 1s' \
    '[locks "fjord"]' 'handoff = 100' >"$dir/hosts.ini"
start_zookeeper
for host in A B C; do
    start_dlockfs "$host" --session-timeout 20s --config "$dir/hosts.ini"
done
chaos=("$python" "$tests/system/chaos.py")
"${chaos[@]}" plan-restarts "$seed" "$duration" daemon-restart >"$dir/plan"
start workers "${chaos[@]}" work "$seed" 5 "$dir/records" "$dir/faults" "$dir/calm" "$dir/A" "$dir/B" "$dir/C"

begin=$(now_ms)
while read -r -u 3 at what fault target; do
    while [ $(($(now_ms) - begin)) -lt "$at" ]; do
        alive workers || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
        sleep 0.02
    done
    [ "$what" = end ] || send_signal "$target" USR2
    read -r clock _ </proc/uptime
    echo "$clock $what $fault $target" >>"$dir/faults"
done 3<"$dir/plan"
go calm
finish workers 60 || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
cat "$dir/workers.out"
lost=$(cat "$dir/"[ABC].log | grep -c 'giving it up\|has expired' || true)
"${chaos[@]}" check-restarts "$dir/records" "$dir/faults" "$lost" || fail "seed $seed"
taken=$(cat "$dir/"[ABC].log | grep -c ' goes on with version ')
[ "$taken" -ge 10 ] || fail "seed $seed: only $taken programs have taken over"
if grep 'does not take over' "$dir/"[ABC].log; then
    fail "seed $seed: a program has not taken over"
fi
for name in anvil brook cedar delta ember fjord; do
    wait_claims "$name" 0
done
