#!/bin/bash
# While claims are held back because their numbers come to an end, the status says so, and dlockctl doctor; a daemon that is killed
# or restarted and goes on holds them back, too, and places them with the new numbers. With lock_delay, what a lost holder has left
# keeps the numbers from starting anew, and nobody waits for less than the delay because of that. Data of others is not overwritten.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=numbers.sh
. "$tests/system/stores/zookeeper/numbers.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../../lib/kept.sh
. "$tests/lib/kept.sh"

delay=12 # seconds
start_zookeeper
zookeeper make /dlockfs/above "of somebody else"
craft /dlockfs/job=$late /dlockfs/lost=$late /dlockfs/last=2147483646 /dlockfs/above=$late
printf '[locks "l*"]\nlock_delay = %ds\n' "$delay" >"$dir/dlockfs.ini"
start_kept A --session-timeout 20s --config "$dir/dlockfs.ini"
start_dlockfs B --session-timeout 10m --config "$dir/dlockfs.ini"
start_dlockfs C --session-timeout 4s --config "$dir/dlockfs.ini"

# ends HOST LOCK KEY: what the status of the host says of the end of the lock's numbers.
ends() {
    sed -n "s/^numbers_end=$2 .*$3=\([^ ]*\).*/\1/p" "$dir/$1/.dlockfs/status"
}

says() { # HOST LOCK KEY VALUE
    [ "$(ends "$1" "$2" "$3")" = "$4" ]
}

held_back() { # HOST NUMBER
    grep -qx "dlockfs_held_back_calls $2" "$dir/$1/.dlockfs/metrics"
}

expect_equal "all is well" "" "$(grep numbers_end "$dir/A/.dlockfs/status" || true)"
held_back A 0

# The holder has the first late number, so all who come later on its host are held back.
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
today=$(date +%s)
for i in 1 2; do
    start "waiter-$i" flock "$dir/A/job" sh -c 'echo held; exec sleep infinity'
done
wait_until "$deadline" held_back A 2
expect_equal "number" "$late" "$(ends A job number)"
expect_equal "held back" 2 "$(ends A job held_back)"
expect_equal "what for" claims "$(ends A job awaits)"
[ $(($(ends A job since) - today)) -le 5 ] || fail "since $(ends A job since), now it is $today"
grep -qx 'dlockfs_numbers_end_locks 1' "$dir/A/.dlockfs/metrics"
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || true
grep -q "^warning: numbers: job: .*($late, for [0-9]*s), 2 calls are held back until the claims in its queue are gone; see" \
    "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
"$dlockctl" --mount "$dir/B" doctor >"$dir/doctor.out" || true
if grep '^warning: numbers' "$dir/doctor.out"; then
    fail "nothing of it is known on B"
fi
for _ in 1 2; do
    crash A
    wait_until "$deadline" held_back A 2
    restart_kept A
    wait_until "$deadline" held_back A 2
done
not_fenced holder
expect_equal "claims" 1 "$(zookeeper claims /dlockfs/job | wc -l)"
expect_equal "the next number" $((late + 1)) "$(zookeeper next /dlockfs/job)"
if said waiter-1 held || said waiter-2 held; then
    violation "two hold"
fi
release holder
one_holds() {
    said waiter-1 held || said waiter-2 held
}
wait_until "$deadline" one_holds
[ "$(zookeeper next /dlockfs/job)" -lt 10 ] || fail "the numbers have not started anew"
says A job number "" || fail "the status still says so"
held_back A 0
release waiter-1 waiter-2

# What another client has written there is left, though it keeps those below from being asked to pause.
mkdir "$dir/B/above"
hold below "$dir/B/above/below"
expect below held
for _ in 1 2; do
    flock -n "$dir/A/above" true
    wait_until "$deadline" says A above number "" # its queue was seen to be empty
    expect_equal "data" "of somebody else" "$(zookeeper data /dlockfs/above)"
done
[ "$(zookeeper next /dlockfs/above)" -ge $((late + 2)) ] || violation "the numbers of above have started anew beside a claim below"
release below

# The holder of the first late number is lost, and of the last one but one, after which nobody is granted anything.
for lock in lost last; do
    hold "$lock" "$dir/C/$lock"
    expect "$lock" held
done
kill_dlockfs C
no_claims() {
    [ -z "$(zookeeper claims "/dlockfs/$1")" ]
}
wait_until "$deadline" no_claims lost
wait_until "$deadline" no_claims last
release lost last
begin=$(lease now)
for lock in lost last; do
    start "rival-$lock" flock "$dir/B/$lock" sh -c 'echo held; exec sleep infinity'
done
wait_until "$deadline" says B last awaits lock_delay
expect_equal "held back" 1 "$(ends B last held_back)"
grep -q '^position=1 state=lost ' "$dir/B/.dlockfs/locks/last"
for lock in lost last; do
    expect "rival-$lock" held
    waited=$(($(lease now) - begin))
    echo "$lock: $waited ms"
    [ "$waited" -ge $((delay * 1000 - 500)) ] || fail "$lock: granted $waited ms after the loss"
done
[ "$(zookeeper next /dlockfs/last)" -lt 10 ] || fail "the numbers of last have not started anew"
says B last number "" || fail "the status still says so"
release rival-lost rival-last
wait_until "$deadline" flock -n "$dir/A/lost" true
anew() {
    [ "$(zookeeper next /dlockfs/lost)" -lt 10 ]
}
wait_until "$deadline" anew
wait_until "$deadline" says B lost number ""
