#!/bin/bash
# A daemon that hangs while it stops, when it serves no calls any more and is about to tell its holders: its guard tells them
# before another host can be granted their locks, and ends the daemon.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

start_zookeeper
start_dlockfs B --session-timeout 2m
printf '%s\n' '[locks "told"]' 'on_lost = SIGUSR1' >"$dir/A.ini"

no_guard() {
    [ -z "$(guards_of A)" ]
}

for start in start_dlockfs start_kept; do
    "$start" A --session-timeout 4s --config "$dir/A.ini"
    call told "$dir/A/told" catch=SIGUSR1 open ex hold
    expect told "ex ok"
    keep holder "$dir/A/job" flock
    wait_until "$deadline" granted holder
    keep rival "$dir/B/job" flock
    wait_claims job 2
    start tracer "$python" "$tests/lib/stop_at_request.py" "$(pid A)" signal
    expect tracer attached
    case $start in
        start_dlockfs) send_signal A TERM ;;
        start_kept) send_signal manager-A TERM ;;
    esac
    expect tracer stopped
    send_signal A STOP # the store's threads, too, which would keep the session
    wait_until "$deadline" granted rival
    fenced holder || violation "$start: another host has the lock, and the holder was not told"
    [ "$(time_of holder fenced)" -le "$(time_of rival granted)" ] || violation "$start: two held one lock"
    grep '^caught SIGUSR1 ' "$dir/told.out" || fail "$start: no signal was sent"
    wait_until "$deadline" gone A
    finish tracer
    release told holder rival
    case $start in
        start_dlockfs) finish A 2>/dev/null || true ;;
        start_kept)
            finish manager-A || true
            rm "$dir/pids/A"
            ;;
    esac
    wait_until "$deadline" no_guard
    forget_host A
    umount "$dir/A"
done
