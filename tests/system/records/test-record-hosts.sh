#!/bin/bash
# Record locks of fcntl(2) between three hosts, between two programs on one host with a third elsewhere, and on the embedded
# store: who waits for whom, what a conversion, an unlock and a close do, and which cycle is a deadlock.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host"
done
records() {
    timeout 120 "$python" "$tests/system/records/record_hosts.py" "$@"
}
records "$(zookeeper_address)" "$dir/A" "$dir/B" "$dir/C"
records "$(zookeeper_address)" "$dir/A" "$dir/A" "$dir/B"
store=local:
start_dlockfs L
records local "$dir/L" "$dir/L" "$dir/L"
