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
config=$dir/dlockfs.ini
start_zookeeper
printf '[locks]\nlock_delay = %ds\n' "$delay" >"$config"

hosts() {
    start_kept A --session-timeout 6s --config "$config"
    start_dlockfs B --session-timeout 6s --config "$config"
}

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

goes_on_with_it() {
    local begin
    hosts
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
    stop_kept A
}

no_claims() { # LOCK
    local now
    now=$(lease now)
    [ -n "$(zookeeper claims "/dlockfs/$1")" ] || return 0
    stood=$now
    return 1
}

# What was kept is lost with the daemon.
is_lost() {
    hosts
    keep holder "$dir/A/lost" flock
    wait_until "$deadline" granted holder
    kill_kept A
    stood=$(lease now) # the claim did
    wait_until "$deadline" no_claims lost
    flock "$dir/B/lost" true
    waited_since "$stood"
    release holder
}

is_stopped() {
    local begin
    hosts
    keep holder "$dir/A/stopped" flock
    wait_until "$deadline" granted holder
    begin=$(lease now)
    stop_kept A
    markers stopped 1
    flock "$dir/B/stopped" true
    waited_since "$begin"
    markers stopped 0
    wait_until "$deadline" fenced holder
    release holder
}

scene on goes_on_with_it
scene lost is_lost
scene stopped is_stopped
scenes_end
