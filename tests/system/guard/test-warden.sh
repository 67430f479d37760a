#!/bin/bash
# A warden that is stopped (SIGSTOP), and one that is killed, hold the daemon up for a moment at the most, once: others'
# calls go on, the lease is kept for longer than a session lives, and who loses a lock is told by the guard, before another host is
# granted, once. Status and log say so; one that goes on is asked again, and does nothing of what it was asked before.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

requires test "$(id -u)" -eq 0

start_zookeeper
start_proxy link
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
(umask 077 && printf '%s\n' '[mount]' 'user = daemon' '[locks]' 'on_lost = SIGUSR1' 'on_revoke = SIGUSR2' >"$dir/A.ini")
start_dlockfs A --session-timeout 4s --config "$dir/A.ini" --store "$(proxied link)"
start_dlockfs B --session-timeout 4s

find_warden() {
    local process
    for process in $(pgrep -x dlockfs-warden); do
        if tr '\0' '\n' <"/proc/$process/cmdline" | finds -xF "$dir/A"; then
            warden=$process
        fi
    done
}
find_warden
process_record "$dir" warden "$warden" # to be ended with the test

status_says() {
    grep -qx "$1" "$dir/A/.dlockfs/status"
}

log_lines() {
    grep -c "$1" "$dir/A.log" || true
}

# asks: calls for which the daemon asks the warden, as it holds the lock's name: mkdir(2) of it. Others lock meanwhile.
asks() {
    while [ ! -e "$dir/enough" ]; do
        ! mkdir "$dir/A/job" 2>/dev/null || fail "made a folder of a lock"
        flock -n "$dir/A/others" true || fail "a lock that is free is refused"
        echo round
    done
}
rounds() {
    [ "$(wc -l <"$dir/asks.out")" -ge "$1" ]
}

# loses TIMES HOLDER RIVAL: the link is cut, and the holder is told by a signal, its one of so many, before the rival has the lock.
loses() {
    keep "$3" "$dir/B/job" flock
    wait_claims job 2
    cut_link link
    wait_until "$deadline" granted "$3"
    expect_equal "signals to $2" "$1" "$(grep -c '^caught SIGUSR1 ' "$dir/$2.out")"
    [ "$(time_of "$2" caught)" -le "$(time_of "$3" granted)" ] || violation "$3 got its lock before the signal was sent"
    join_link link
    release "$2" "$3"
    wait_until "$deadline" status_says session=connected
}

hold_job() {
    call "$1" "$dir/A/job" catch=SIGUSR1 catch=SIGUSR2 open ex stat hold
    expect "$1" "stat ok"
}

status_says warden=answers || fail "$(<"$dir/A/.dlockfs/status")"
hold_job first
kill -STOP "$warden"
asks >"$dir/asks.out" 2>"$dir/asks.err" &
loop=$!
wait_until "$deadline" grep -q "rights does not answer" "$dir/A.log"
sleep 6 # longer than the session would live if the loop waited
wait_until "$deadline" rounds 50
touch "$dir/enough"
wait "$loop" || fail "$(<"$dir/asks.err")"
status_says warden=silent || fail "$(<"$dir/A/.dlockfs/status")"
expect_equal "losses" 0 "$(log_lines 'has lost')"
expect_equal "signals" 0 "$(grep -c '^caught' "$dir/first.out" || true)"
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || true
grep -q 'dlockfs-warden does not answer' "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
# Another program would have no guard.
send_signal A USR2
wait_until "$deadline" grep -q "does not take over: the process with root's rights does not answer" "$dir/A.log"
expect_equal "complaints" 1 "$(log_lines "rights does not answer; until")"
# Who is asked for the lock.
"$dlockctl" --mount "$dir/A" revoke job
wait_until "$deadline" grep -q '^caught SIGUSR2 ' "$dir/first.out"
loses 1 first first-rival

kill -CONT "$warden"
wait_until "$deadline" status_says warden=answers
grep -q "rights answers again" "$dir/A.log" || fail "$(tail -n 3 "$dir/A.log")"
hold_job second
loses 1 second second-rival

hold_job third
kill -KILL "$warden"
wait_until "$deadline" status_says warden=ended
expect_equal "complaints" 1 "$(log_lines "rights has ended")"
loses 1 third third-rival
hold_job fourth
release fourth
# Nobody is left who could unmount.
send_signal A TERM
wait_until "$deadline" gone A
finish A 2>/dev/null || true
forget_host A
umount -l "$dir/A"
