# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh and its user set
# What the tests of a daemon that hangs share: two hosts, with sessions of $seconds on the one that hangs. Sourced after
# functions.sh and lease.sh.

# hang_time NAME WORD: when the program said so.
hang_time() {
    awk -v "word=$2" '$1 == word { print $NF; exit }' "$dir/$1.out"
}

has_said() {
    [ -n "$(hang_time "$1" "$2")" ]
}

# begin: two hosts; on A one that holds and a command that runs, for whose locks B waits.
begin() {
    start_dlockfs A --session-timeout "${seconds}s" -o on_lost=SIGUSR1
    start_dlockfs B --session-timeout 2m
    start holder "$python" "$tests/system/guard/hang.py" hold "$dir/A/job"
    start run "$dlockctl" run "$dir/A/run" "$python" "$tests/system/guard/hang.py" command
    wait_until "$deadline" has_said holder granted
    wait_until "$deadline" has_said run ready
    keep rival "$dir/B/job" flock
    keep rival-run "$dir/B/run" flock
    wait_claims job 2
    wait_claims run 2
    wait_until "$deadline" lease_is_usual $((seconds * 690))
}

# lease_is_usual MILLISECONDS: no more is left of the lease on A: after a new connection it is as long as the timeout nearly, and
# later 0.675 of it, because the holder asks all the time whether it still has the lock.
lease_is_usual() {
    [ "$(sed -n 's/^lease_left_ms=//p' "$dir/A/.dlockfs/status")" -le "$1" ]
}

# So long that a session would be over that nobody keeps alive.
outlive_session() {
    sleep $((seconds + 1))
}

# told FAULT CUT NAME WORD RIVAL: it was told before the other host was granted its lock.
told() {
    local time grant
    wait_until "$deadline" has_said "$3" "$4"
    wait_until "$deadline" granted "$5"
    time=$(hang_time "$3" "$4")
    grant=$(time_of "$5" granted)
    echo "$1: $3 $4 after $((time - $2)) ms, $5 granted after $((grant - $2)) ms"
    [ "$time" -lt "$grant" ] || fail "$1: $3 was $4 $((time - grant)) ms after the other host was granted its lock"
}

finish_hosts() {
    wait_until "$deadline" gone A
    finish A 2>/dev/null || true
    forget_host A
    expect_status 75 finish run
    release holder rival rival-run
    stop_dlockfs B
    rm -rf "$dir/A.log"
}
