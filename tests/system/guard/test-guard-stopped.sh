#!/bin/bash
# Another program goes on in the daemon's process (SIGUSR2) while the writer, or the guard, of the former one is stopped, or held
# up in the kernel: the former guard does not end the mount at the end of the lease that it knows of. And a guard whose writer
# was killed watches on, for a daemon that hangs and does not start another one.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

seconds=3
start_zookeeper
start_dlockfs B --session-timeout 2m

# stop_helper NAME PROCESS
stop_helper() {
    process_record "$dir" "$1" "$2" # to be ended with the test
    kill -STOP "$2"
}

one_guard() {
    [ "$(guards_of A | wc -l)" -eq 1 ]
}

# Sets guard and writer; fails until the writer has its name.
find_helpers() {
    guard=$(guards_of A) && writer=$(pgrep -x dlockfs-writer -P "$guard")
}

for start in start_kept start_dlockfs; do
    "$start" A --session-timeout "${seconds}s" -o on_lost=SIGUSR1
    call holder "$dir/A/job" catch=SIGUSR1 open ex hold
    expect holder "ex ok"
    keep rival "$dir/B/job" flock
    wait_claims job 2
    for stopped in writer guard both; do
        wait_until "$deadline" find_helpers
        [ "$stopped" = guard ] || stop_helper writer "$writer"
        [ "$stopped" = writer ] || stop_helper guard "$guard"
        before=$(gone_on A)
        send_signal A USR2
        wait_until "$deadline" gone_on_more A "$before"
        sleep "$seconds" # the lease that the former guard knows of is over
        kill -CONT "$writer" "$guard" 2>/dev/null || true
        wait_until "$deadline" one_guard
        alive A || fail "$start, $stopped: the daemon was killed"
        not_granted rival "$start, $stopped"
    done
    if grep '^caught' "$dir/holder.out"; then
        fail "$start: a holder was told of a loss"
    fi
    release holder
    wait_until "$deadline" granted rival
    release rival
    case $start in
        start_kept) stop_kept A ;;
        start_dlockfs) stop_dlockfs A ;;
    esac
    rm -f "$dir/A.log"
done

start_dlockfs A --session-timeout "${seconds}s" -o on_lost=SIGUSR1
call holder "$dir/A/job" catch=SIGUSR1 open ex hold
expect holder "ex ok"
keep rival "$dir/B/job" flock
wait_claims job 2
wait_until "$deadline" find_helpers
former=$guard
# While the daemon runs it starts another guard, and the former one leaves the watch to that.
kill -KILL "$writer"
others() {
    find_helpers && [ "$guard" != "$former" ]
}
wait_until "$deadline" others
pause A
kill -KILL "$writer"
wait_until "$deadline" granted rival
expect_equal "signals to the holder" 1 "$(grep -c '^caught SIGUSR1 ' "$dir/holder.out")"
release holder rival
wait_until "$deadline" gone A
finish A 2>/dev/null || true
forget_host A
umount "$dir/A"
