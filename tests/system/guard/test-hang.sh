#!/bin/bash
# A daemon that hangs, stopped or in an endless loop, or is killed: every holder is told before another host can be granted its lock, by the
# signal of on_lost, by poll, by an error of each call, and the command of dlockctl run is ended; also where nothing is left to
# tell but the clock of dlockctl. The daemon is ended, and does nothing more. Under a service manager the watchdog ends it before
# the lease does, and the next process goes on: nobody notices.
#
# Prints milliseconds from the fault on. Usage by hand, for sessions of another length: DLOCKFS_BUILD=... test-hang.sh [SECONDS]
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
requires test -e /proc/self/syscall

numbers "$@"
seconds=${1:-4}
# shellcheck source=hang.sh
. "$tests/system/guard/hang.sh"

start_zookeeper

for fault in stopped spinning killed; do
    begin
    cut=$(lease now)
    case $fault in
        stopped) pause A ;;
        spinning) "$python" "$tests/system/guard/spin.py" "$(pid A)" ;;
        killed) kill -KILL "$(pid A)" ;;
    esac
    for word in signalled polled failed; do
        told $fault "$cut" holder $word rival
    done
    told $fault "$cut" run ended rival-run
    [ "$fault" != stopped ] || resume A # it does not run any more
    grep -q 'run: .*the lock is lost; the command is told to end' "$dir/run.out"
    finish_hosts
done

# Without a guard that could do anything: a command of dlockctl run ends all the same.
begin
guard=$(guards_of A)
cut=$(lease now)
suspend A
told "guard stopped" "$cut" run ended rival-run
grep -q 'run: the daemon has not answered before the lease ended: the lock is lost; the command is told to end' "$dir/run.out"
has_said holder polled && fail "the guard was not stopped"
kill -CONT "$guard"
told_late() {
    has_said holder signalled && has_said holder polled
}
wait_until "$deadline" told_late
finish_hosts

# Under a service manager, while nothing is held it waits as long as the unit says.
watchdogs() {
    grep -cx watchdog "$dir/manager-A.out" || true
}
WATCHDOG_USEC=60000000 start_kept A --session-timeout "${seconds}s" -o on_lost=SIGUSR1
start_dlockfs B --session-timeout 2m
pause A
expect_status 124 timeout "$seconds" "$python" -c 'import select; select.select([], [], [])'
resume A
flock "$dir/A/first" true
start holder "$python" "$tests/system/guard/hang.py" hold "$dir/A/job"
start run "$dlockctl" run "$dir/A/run" "$python" "$tests/system/guard/hang.py" command
wait_until "$deadline" has_said holder granted
wait_until "$deadline" has_said run ready
keep rival "$dir/B/job" flock
wait_claims job 2
expect_equal "ends by the watchdog" 0 "$(watchdogs)"
for fault in stopped spinning; do
    outlive_session
    before=$(gone_on A)
    ended=$(watchdogs)
    cut=$(lease now)
    case $fault in
        stopped) send_signal A STOP ;; # for a moment only
        spinning) "$python" "$tests/system/guard/spin.py" "$(pid A)" ;;
    esac
    wait_until "$deadline" gone_on_more A "$before"
    echo "watchdog, $fault: another process goes on after $(($(lease now) - cut)) ms"
    expect_equal "ends by the watchdog" $((ended + 1)) "$(watchdogs)"
done
outlive_session
not_granted rival
for word in signalled polled failed; do
    has_said holder $word && fail "the holder was told of a loss: $(<"$dir/holder.out")"
done
alive run
release holder run
wait_until "$deadline" granted rival
release rival
stop_kept A
