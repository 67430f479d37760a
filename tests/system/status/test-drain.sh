#!/bin/bash
# dlockctl drain: a host that drains grants nothing new and is in nobody's way, says so everywhere, waits for its holders, and goes on to
# drain after a restart; after undrain those who wait are granted.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
requires command -v jq

start_zookeeper
printf '%s\n' '[mount]' 'directories = files' '[locks "kept"]' 'keep = 1d' '[locks "files"]' 'style = file' >"$dir/a.ini"
start_kept A --session-timeout 20s --config "$dir/a.ini"
start_dlockfs B --session-timeout 20s

ctl() {
    "$dlockctl" --mount "$dir/A" "$@"
}

# status KEY: what that of A says of it.
status() {
    sed -n "s/^$1=//p" "$dir/A/.dlockfs/status"
}

status_is() {
    [ "$(status "$1")" = "$2" ]
}

# drains HOST VALUE: whether A is seen to drain there.
drains() {
    [ "$("$dlockctl" --mount "$dir/$1" hosts --json | jq '[.stores[0].hosts[] | select(.draining)] | length')" = "$2" ]
}

hold holder "$dir/A/job"
expect holder held
flock "$dir/A/kept" true
expect_equal kept 1 "$(status kept)"
hold other "$dir/B/busy"
expect other held
hold waiter "$dir/A/busy"
wait_claims busy 2
hold behind "$dir/B/busy"
wait_claims busy 3
wait_until "$deadline" drains B 0

expect_status 77 setpriv --reuid=65534 --regid=65534 --clear-groups "$(for_others "$dlockctl")" --mount "$dir/A" drain 2>"$dir/err"
finds 'root may, and the user as whom its daemon runs' <"$dir/err"
expect_equal "drain" "$dir/A grants nothing new; 1 lock is held" "$(ctl drain)"
expect_equal "drain, as JSON" "true 1" "$(ctl drain --json | jq -r '"\(.draining) \(.holders)"')"
wait_claims busy 2
wait_until "$deadline" status_is kept 0
wait_claims kept 0

# It says so.
expect_equal draining yes "$(status draining)"
finds -x 'dlockfs_draining 1' <"$dir/A/.dlockfs/metrics"
ctl doctor >"$dir/doctor" || true
finds -x 'warning: drain: this host grants nothing new, until: dlockctl undrain' <"$dir/doctor"
wait_until "$deadline" drains B 1
"$dlockctl" --mount "$dir/B" hosts | finds ' drains '

# Nothing new, of any kind; and nobody stands behind who waits here.
call tries "$dir/A/free" open ex-nb w-nb:0-9 excl-nb close
finish tries
expect tries "ex-nb ENOLCK"
expect tries "w-nb:0-9 ENOLCK"
expect tries "excl-nb ENOLCK"
refused mkdir "$dir/A/files/lock" 2>"$dir/err"
finds 'No locks available' <"$dir/err"
flock -n "$dir/B/free" true
release other
expect behind held
release behind
comes_free "$dir/B/busy"

# The same after a kill.
crash A
expect_equal "draining, after a kill" yes "$(status draining)"
refused flock -n "$dir/A/free" true 2>"$dir/err"
! said waiter held || violation "granted on a host that drains"

# Waiting for its holders, whom it names.
expect_status 1 ctl drain -w 0.3 2>"$dir/err"
finds "$dir/A: 1 lock is held yet, for the longest time job pid=$(pid holder) for_s=[0-9]*; see: dlockctl ls\$" <"$dir/err"
start drained "$dlockctl" --mount "$dir/A" drain --wait
release holder
expect drained "$dir/A grants nothing new; 0 locks are held"
expect_status 0 finish drained

ctl undrain
expect waiter held
expect_equal draining "" "$(status draining)"
flock -n "$dir/A/free" true
mkdir "$dir/A/files/lock"
rmdir "$dir/A/files/lock"
release waiter
