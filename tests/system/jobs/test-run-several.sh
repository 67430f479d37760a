#!/bin/bash
# dlockctl run --also: several locks, all or none, within one time to wait; two that want the same in another order never wait for each
# other; the loss of one ends the command.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

run_on() {
    "$dlockctl" --mount "$dir/$1" run "${@:2}"
}

# all_free LOCK...
all_free() {
    local name
    for name; do
        wait_claims "$name" 0
    done
}

# What the command finds.
# shellcheck disable=SC2016 # for the inner shell
run_on A --also 'z z' --also a m sh -c 'echo "$DLOCK_NAME,$DLOCK_NAME_1,$DLOCK_NAME_2,$DLOCK_NAME_3"
echo "$DLOCK_TOKEN $DLOCK_TOKEN_1 $DLOCK_TOKEN_2"' >"$dir/environment"
expect_equal "names" "m,z z,a," "$(sed -n 1p "$dir/environment")"
expect_equal "tokens" 3 "$(sed -n 2p "$dir/environment" | tr ' ' '\n' | grep -c '^[0-9][0-9]*$')"
all_free a m

# All or none.
hold holder "$dir/B/m"
expect holder held
for order in "m a z" "a m z" "z a m"; do
    read -r first second third <<<"$order"
    expect_status 1 run_on A -n --also "$second" --also "$third" "$first" true
    expect_status 5 run_on A -w 0.3 -E 5 --also "$second" --also "$third" "$first" true
    all_free a z
    wait_claims m 1
done
start waiter "$dlockctl" --mount "$dir/A" run --also a --also z m sh -c 'echo got; exec sleep infinity'
wait_claims m 2
wait_claims a 1
wait_claims z 0
release holder
expect waiter got
wait_claims z 1
expect_status 1 flock -n "$dir/B/z" true

# One is lost, whichever.
"$dlockctl" --mount "$dir/B" break --yes z >"$dir/break.out"
expect_status 75 finish waiter
grep -q 'z: the lock is lost; the command is told to end' "$dir/waiter.out" || fail "$(<"$dir/waiter.out")"
all_free a m z
start asked "$dlockctl" --mount "$dir/A" run --also a m sh -c 'echo got; exec sleep infinity'
expect asked got
"$dlockctl" --mount "$dir/B" revoke a >"$dir/revoke.out"
expect_status 143 finish asked
all_free a m

# In opposite orders on two hosts, and each with a lock of a third.
loop() {
    local number
    for ((number = 0; number < 30; number++)); do
        run_on "$1" "${@:2}" sh -c 'read -r count <"$1"; echo $((count + 1)) >"$1"' - "$dir/counter"
    done
}
echo 0 >"$dir/counter"
loop A --also b --also c a &
first=$!
loop B --also a --also b c &
second=$!
loop B --also c --also a b &
third=$!
wait "$first"
wait "$second"
wait "$third"
expect_equal "violation: counted" 90 "$(<"$dir/counter")"

# Once, with another lock besides.
run_on A --once monday --also a job true
expect_equal "skipped" skipped "$(run_on B --once monday --also a job echo ran 2>&1)"

# What cannot be.
for name in m "$dir/A/m"; do
    expect_status 64 run_on A --also a --also "$name" m true 2>"$dir/err"
    grep -qx 'dlockctl: --also m: is named twice; expected another lock' "$dir/err" || fail "$(<"$dir/err")"
done
expect_status 64 "$dlockctl" run --also "$dir/B/a" "$dir/A/m" true 2>"$dir/err"
grep -q 'is in another mount' "$dir/err" || fail "$(<"$dir/err")"
