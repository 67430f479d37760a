#!/bin/bash
# Record locks of fcntl(2) between three hosts, between two programs on one host with a third elsewhere, and on the embedded
# store: who waits for whom, what a conversion, an unlock and a close do, and which cycle is a deadlock.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

records() {
    timeout 120 "$python" "$tests/system/records/record_hosts.py" "$@"
}

on_zookeeper() { # ROOT HOST...: three programs, on these hosts
    local host root=$1
    store=zookeeper://$(zookeeper_address)/$root
    shift
    for host in $(printf '%s\n' "$@" | sort -u); do
        start_dlockfs "$host"
    done
    records "$(zookeeper_address)/$root" "${@/#/$dir/}"
}

on_one_host() {
    start_dlockfs L
    records local "$dir/L" "$dir/L" "$dir/L"
}

start_zookeeper
scene three on_zookeeper three A B C
scene two on_zookeeper two A A B
store=local: scene one on_one_host
scenes_end
