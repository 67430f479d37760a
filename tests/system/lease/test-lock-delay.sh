#!/bin/bash
# A holder and its daemon are suspended, between the holder's look whether it still holds the lock and its write, until their
# session is over. The write arrives late: without lock_delay in the time of the next holder, with it before.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

delay=20 # seconds

start_zookeeper
config=$dir/dlockfs.ini
printf '[locks "delayed*"]\nlock_delay = %ds\n' "$delay" >"$config"

hosts() {
    start_dlockfs A --session-timeout 6s --config "$config"
    start_dlockfs B --session-timeout 2m --config "$config"
}

claims() { # LOCK NUMBER
    [ "$(zookeeper claims "/dlockfs/$1" | wc -l)" -eq "$2" ]
}

markers() { # LOCK NUMBER
    [ "$(zookeeper children "/dlockfs/$1" | awk '/~held~/ { n++ } END { print n + 0 }')" -eq "$2" ]
}

wrote() { # LINE FILE
    grep -qx "$1" "$dir/$2.txt" 2>/dev/null
}

# suspend_holder LOCK: a holder of it on host A, that is to write, its daemon, and the daemon's guard.
suspend_holder() {
    start "holder-$1" "$python" -u "$tests/lib/lease.py" late "$dir/A/$1" "$dir/go-$1" "$dir/$1.txt"
    wait_until "$deadline" granted "holder-$1"
    start "rival-$1" flock "$dir/B/$1" sh -c "echo next >>'$dir/$1.txt'; exec sleep 1000"
    wait_until "$deadline" claims "$1" 2
    send_signal "holder-$1" STOP
    suspend A
    go "go-$1"
}

proceed() {
    send_signal "holder-$1" CONT
    awake A
    wait_until "$deadline" wrote late "$1"
}

without_delay() {
    hosts
    suspend_holder plain
    markers plain 0
    wait_until "$deadline" wrote next plain
    proceed plain
    expect_equal "without a delay" "next late" "$(paste -sd' ' "$dir/plain.txt")"
    release holder-plain rival-plain
}

with_delay() {
    local lost waited
    hosts
    suspend_holder delayed
    markers delayed 1
    wait_until "$deadline" claims delayed 1
    lost=$(lease now)
    refused flock -n "$dir/B/delayed" true
    proceed delayed
    wait_until "$deadline" wrote next delayed
    expect_equal "with a delay" "late next" "$(paste -sd' ' "$dir/delayed.txt")"
    waited=$(($(lease now) - lost))
    echo "from the loss to the next holder: $waited ms"
    # The claim was seen to be gone by another clock tick, and a little later.
    [ "$waited" -ge $((delay * 1000 - 2000)) ] || fail "granted $waited ms after the loss"
    release holder-delayed rival-delayed
}

# A clean release, and a clean end of a daemon, are no loss.
clean_release() {
    local begin
    hosts
    wait_until "$deadline" flock "$dir/A/delayed-too" true
    start user flock "$dir/A/delayed-too" sleep 1000
    wait_until "$deadline" markers delayed-too 1
    release user
    begin=$(lease now)
    wait_until "$deadline" flock -n "$dir/B/delayed-too" true
    [ $(($(lease now) - begin)) -lt $((delay * 1000 / 2)) ] || fail "a clean release was delayed"
    wait_until "$deadline" markers delayed-too 0
}

for part in without_delay with_delay clean_release; do
    scene "$part" "$part"
done
scenes_end
