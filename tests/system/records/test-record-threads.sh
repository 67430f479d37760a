#!/bin/bash
# Who waits in a cycle is told EDEADLK only if all in it hold what the next one waits for: by processes that inherit
# an exclusive open and lock ranges of it, by three processes with somebody among them who only waits, and by many
# threads that lock sections of one file by locks of open files and of their process, which the data under them
# show to exclude. On the embedded store, and on two hosts.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

cycles() {
    timeout 100 "$python" "$tests/system/records/record_cycles.py" "$@" || fail "$*"
}
threads() {
    timeout 100 "$build/tests/system/record_threads" 300 "$dir/data" "$@" || fail "threads: $*"
}

start_dlockfs L
cycles forked "$dir/L"
cycles ring "$dir/L/ring" "$dir/L/ring" "$dir/L/ring"
cycles waiter "$dir/L/waiter" "$dir/L/waiter" "$dir/L/waiter"
threads "$dir/L/sections"

start_zookeeper
start_dlockfs A
start_dlockfs B
cycles forked "$dir/A"
cycles ring "$dir/A/ring" "$dir/B/ring" "$dir/A/ring"
for order in AAB ABA BAA ABB BAB BBA; do
    cycles waiter "$dir/${order:0:1}/waiter" "$dir/${order:1:1}/waiter" "$dir/${order:2:1}/waiter"
    wait_claims waiter 0
done
threads "$dir/A/sections" "$dir/B/sections"
wait_claims sections 0
