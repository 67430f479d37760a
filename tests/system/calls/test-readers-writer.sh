#!/bin/bash
# Readers on several hosts hold together; a writer that waits is not overtaken by readers that come later.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host"
done

# The first readers together, on all hosts.
for reader in 1 2 3 4; do
    host=$(cut -c$((reader % 3 + 1)) <<<ABC)
    hold "reader$reader" -s "$dir/$host/job"
done
for reader in 1 2 3 4; do
    expect "reader$reader" held
done
wait_claims job 4

# A writer waits; whoever comes after it waits behind it, on any host, and a try to read fails.
hold writer -x "$dir/B/job"
wait_claims job 5
for host in A B C; do
    expect_status 1 flock -n -s "$dir/$host/job" true
done
wait_claims job 5
for reader in 5 6 7; do
    host=$(cut -c$((reader % 3 + 1)) <<<ABC)
    hold "reader$reader" -s "$dir/$host/job"
    wait_claims job "$((reader + 1))"
done

release reader1 reader2 reader3
wait_claims job 5
if said writer held; then
    violation "the writer got the lock while a reader holds it"
fi
release reader4
expect writer held
for reader in 5 6 7; do
    if said "reader$reader" held; then
        violation "a reader holds together with the writer"
    fi
done

# Its end wakes all readers behind it.
release writer
for reader in 5 6 7; do
    expect "reader$reader" held
done
release reader5 reader6 reader7

# Readers that never leave a gap do not keep a writer out.
for host in A B C; do
    for number in 1 2; do
        start "stream-$host$number" sh -c 'while :; do flock -s "$1" sleep 0.05; done' - "$dir/$host/job"
    done
done
for host in A B C; do
    timeout "$deadline" flock -x "$dir/$host/job" true || fail "a writer on $host was starved"
done
release stream-{A,B,C}{1,2}
