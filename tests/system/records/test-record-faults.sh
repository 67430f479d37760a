#!/bin/bash
# Processes on three hosts lock random ranges of one file while links are cut, hosts suspended, daemons killed, and servers of the
# ensemble restarted: no two ever hold what conflicts, all get locks again afterwards, and nothing is left in the queue.
#
# From the environment: SEED; DURATION, for how many seconds there are faults.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

mount_host() { # HOST
    start_dlockfs "$1" --session-timeout 2s --store "$(proxied "link-$1")"
}

# Where a daemon was too slow to fence in time, its guard has ended it, and there is another one.
replaced=0
replace_ended() {
    local host
    for host in "${names[@]}"; do
        if gone "$host"; then
            kill_dlockfs "$host"
            mount_host "$host"
            replaced=$((replaced + 1))
        fi
    done
}

start_ensemble 3
servers=(zk1 zk2 zk3)
names=(A B C)
for number in 0 1 2; do
    start_proxy "link-${names[number]}" "${servers[number]}"
    mount_host "${names[number]}"
done
seed=${SEED:-$RANDOM}
echo "seed: $seed"
start workers "$python" "$tests/system/records/record_faults.py" "$seed" 12 "$dir/calm" "$dir/A/job" "$dir/B/job" "$dir/C/job"

# All kinds of faults in turn, each on any host; so all of them come however slow the machine is. The lease lasts 1.2 s.
RANDOM=$seed
lengths=(3 0.1 1.5 2.5 0.5)
gaps=(0.2 0.7 1.5)
faults=0
end=$(($(now_ms) + ${DURATION:-12} * 1000))
until [ "$faults" -ge 6 ] && [ "$(now_ms)" -ge "$end" ]; do
    sleep "${gaps[RANDOM % 3]}"
    alive workers || fail "seed $seed, fault $faults"
    replace_ended
    host=${names[RANDOM % 3]}
    length=${lengths[faults % 5]}
    case $((faults % 6)) in
        0 | 3)
            cut_link "link-$host"
            sleep "$length"
            join_link "link-$host"
            ;;
        1) restart_zookeeper "${servers[RANDOM % 3]}" ;;
        2 | 5)
            suspend "$host"
            sleep "$length"
            awake "$host"
            ;;
        4)
            kill_dlockfs "$host"
            sleep "$length"
            mount_host "$host"
            ;;
    esac
    faults=$((faults + 1))
done
replace_ended
go calm
finish workers 150 || fail "seed $seed"
cat "$dir/workers.out"
losses=$(cat "$dir/"[ABC].log | grep -c 'giving it up\|has expired' || true)
echo "faults: $faults, lost sessions: $losses, ended by the guard: $replaced"
[ $((losses + replaced)) -ge 2 ] || fail "hardly any session was lost"
zookeeper_name=zk1
wait_claims job 0
