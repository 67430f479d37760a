#!/bin/bash
# Processes on three hosts lock random ranges of one file, convert and release parts of them, are interrupted, and take flock as
# well: no two ever hold what conflicts, nobody waits for ever, and nothing is left in the queue.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host" -o try_limit=60s
done
random() { # SECONDS PROCESSES KINDS FILE...
    echo "$3:"
    timeout 100 "$python" "$tests/system/records/record_random.py" "$1" "$seed" "${@:2}" || fail "seed $seed"
}
ON_FAILURE="$python $tests/lib/zookeeper.py $(zookeeper_address) queue /dlockfs/job"
export ON_FAILURE
seed=${SEED:-$RANDOM}
echo "seed: $seed"
random 5 12 records "$dir/A/job" "$dir/B/job" "$dir/C/job"
wait_claims job 0
random 5 12 records,descriptions,flock,records "$dir/A/job" "$dir/B/job" "$dir/C/job"
wait_claims job 0
unset ON_FAILURE
store=local:
start_dlockfs L
random 2 8 records,descriptions,records,flock "$dir/L/job"
