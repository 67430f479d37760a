#!/bin/bash
# Hosts that ask for one lock at the same moment by calls that do not wait, as cron jobs with flock -n do: on how many of them a job
# runs, and how long it takes until the others are refused. The hosts are mounts of this machine, on one ZooKeeper server. Beside it the
# same for a plain client, which makes its claim and lists the queue, with all hosts at once, too.
#
#     tests/bench/together.sh [HOSTS [ROUNDS [RTT-MS [JOB-MS [TRY-GRACE]]]]]      (40, 10, 5, 50, auto)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "${@:1:4}"

hosts_count=${1:-40}
rounds=${2:-10}
rtt=${3:-5}
job=${4:-50}
grace=${5:-auto}

start_zookeeper
start_proxy link
awk "BEGIN { print $rtt / 2 }" >"$dir/link/delay"
store=$(proxied link)
mounts=()
for ((number = 1; number <= hosts_count; number++)); do
    start_dlockfs "h$number" --session-timeout 40s -o "try_grace=$grace"
    mounts+=("$dir/h$number")
done
"$python" "$tests/bench/together.py" "$rounds" "$job" "${store#zookeeper://}" "${mounts[@]}"
