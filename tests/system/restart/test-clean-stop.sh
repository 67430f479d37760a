#!/bin/bash
# A clean stop of the daemon, by SIGTERM, SIGINT or umount, or by SIGUSR1 where nobody keeps anything for the next one, takes
# the mount away and releases at once what was held and waited for through it; it ends with 0.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs B --session-timeout 60s

for signal in TERM INT USR1; do
    start_dlockfs A --session-timeout 60s
    call holder "$dir/A/job" open ex hold
    expect holder "ex ok"
    call opened "$dir/A/other" excl hold
    expect opened "excl ok"
    call waiter-a "$dir/A/job" open ex hold
    wait_claims job 2
    call waiter-x "$dir/A/job" excl hold
    wait_claims job 3
    call waiter-b "$dir/B/job" open ex hold
    wait_claims job 4
    stop_dlockfs A "$signal"
    wait_until "$deadline" said waiter-b "ex ok"
    flock -n "$dir/B/other" true
    wait_claims job 1
    wait_until "$deadline" grep -q '^ex E' "$dir/waiter-a.out"
    wait_until "$deadline" grep -q '^excl E' "$dir/waiter-x.out"
    release waiter-b waiter-a waiter-x holder opened
done

grep -qx 'dlockfs: stopping on SIGUSR1: nothing is kept for another process' "$dir/A.log"

# While it stops nobody is granted what another gives up: here the reader behind the writer.
start_dlockfs A -o linger=0ms
hold reader -s "$dir/A/job"
expect reader held
call writer "$dir/A/job" open ex hold
wait_claims job 2
call late "$dir/A/job" open sh hold
wait_claims job 3
stop_dlockfs A
wait_until "$deadline" grep -q '^sh E' "$dir/late.out"
release reader writer late

# umount(8) of an unused mount ends the daemon as well.
start_dlockfs A
umount "$dir/A"
expect_status 0 finish A
forget_host A
not_mounted "$dir/A"

# In use, it is busy and stays.
start_dlockfs A
hold holder "$dir/A/job"
expect holder held
refused umount "$dir/A" 2>"$dir/umount.err"
expect_status 1 flock -n "$dir/B/job" true
release holder
