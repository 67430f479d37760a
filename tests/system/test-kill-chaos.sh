#!/bin/bash
# As test-restart-chaos.sh, under a service manager that keeps the descriptors of the daemons (kept.sh): they are killed, told
# to leave (SIGUSR1), and replaced (SIGUSR2), at any moment, also before the last one has gone on. Nobody ever loses a lock or
# the mount, and no session ends; no two ever held what conflicts, tokens grew, and no claim is left over.
#
# From the environment: SEED; DURATION, for how many seconds.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=kept.sh
. "$tests/system/kept.sh"

seed=${SEED:-$RANDOM}
duration=${DURATION:-8}
echo "seed: $seed, $duration s of kills"
printf '%s\n' '[locks "delta"]' 'handoff = 1' 'keep = 1s' '[locks "ember"]' 'handoff = 3' 'keep = 1s' \
    '[locks "fjord"]' 'handoff = 100' >"$dir/hosts.ini"
start_zookeeper
for host in A B C; do
    start_kept "$host" --session-timeout 20s --config "$dir/hosts.ini"
done
chaos=("$python" "$tests/system/chaos.py")
"${chaos[@]}" plan-restarts "$seed" "$duration" daemon-crash daemon-crash-too daemon-leave daemon-restart >"$dir/plan"
start workers "${chaos[@]}" work "$seed" 5 "$dir/records" "$dir/faults" "$dir/calm" "$dir/A" "$dir/B" "$dir/C"

begin=$(now_ms)
while read -r -u 3 at what fault target; do
    while [ $(($(now_ms) - begin)) -lt "$at" ]; do
        alive workers || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
        sleep 0.02
    done
    case $what-$fault in
        begin-daemon-crash*) send_signal "$target" KILL ;;
        begin-daemon-leave) send_signal "manager-$target" USR1 ;;
        begin-daemon-restart) send_signal "$target" USR2 ;;
    esac
    read -r clock _ </proc/uptime
    echo "$clock $what $fault $target" >>"$dir/faults"
done 3<"$dir/plan"
go calm
finish workers 60 || fail "seed $seed: $(tail -n 5 "$dir/workers.out")"
cat "$dir/workers.out"
lost=$(cat "$dir/"[ABC].log | grep -c 'giving it up\|has expired' || true)
"${chaos[@]}" check-restarts "$dir/records" "$dir/faults" "$lost" || fail "seed $seed"
taken=$(cat "$dir/"[ABC].log | grep -c ' goes on with version ')
[ "$taken" -ge 10 ] || fail "seed $seed: only $taken daemons have gone on"
if grep 'beginning anew\|does not take over\|not kept' "$dir/"[ABC].log; then
    fail "seed $seed: a daemon has not gone on"
fi
for name in anvil brook cedar delta ember fjord; do
    wait_claims "$name" 0
done
for host in A B C; do
    stop_kept "$host"
done
