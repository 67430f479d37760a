#!/bin/bash
# With lock_delay, a daemon that is killed or restarted and goes on with what was kept has lost nothing, and nobody waits for a
# delay. One that does not come back, and one that is stopped, have lost what was held.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

delay=20 # seconds
start_zookeeper
printf '[locks]\nlock_delay = %ds\n' "$delay" >"$dir/dlockfs.ini"
start_kept A --session-timeout 6s --config "$dir/dlockfs.ini"
start_dlockfs B --session-timeout 6s --config "$dir/dlockfs.ini"

markers() { # LOCK NUMBER
    [ "$(zookeeper children "/dlockfs/$1" | grep -c '~held~')" -eq "$2" ]
}

not_delayed() { # MILLISECONDS: when the release began
    [ $(($(lease now) - $1)) -lt $((delay * 1000 - 500)) ] || fail "a release was delayed"
}

waited_since() { # MILLISECONDS
    local waited=$(($(lease now) - $1))
    [ "$waited" -ge $((delay * 1000 - 500)) ] || fail "granted $waited ms after the loss"
}

keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
start waiter flock "$dir/A/job" sh -c 'echo held; exec sleep infinity'
wait_until "$deadline" markers job 2 # that of the next one on the holder's host is made early
for _ in 1 2; do
    crash A
    restart_kept A
done
not_fenced holder
markers job 2
refused flock -n "$dir/B/job" true
begin=$(lease now)
release holder
expect waiter held
not_delayed "$begin"
crash A
begin=$(lease now)
release waiter
wait_until "$deadline" flock -n "$dir/B/job" true
not_delayed "$begin"
wait_until "$deadline" markers job 0

# What was kept is lost with the daemon.
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
kill_kept A
stood=$(lease now) # the claim did
no_claims() {
    local now
    now=$(lease now)
    [ -n "$(zookeeper claims /dlockfs/job)" ] || return 0
    stood=$now
    return 1
}
wait_until "$deadline" no_claims
flock "$dir/B/job" true
waited_since "$stood"
release holder

start_kept A --session-timeout 6s --config "$dir/dlockfs.ini"
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
begin=$(lease now)
stop_kept A
markers job 1
flock "$dir/B/job" true
waited_since "$begin"
markers job 0
wait_until "$deadline" fenced holder
release holder
