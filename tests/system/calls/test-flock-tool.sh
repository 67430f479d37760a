#!/bin/bash
# flock(1) of util-linux works in all its forms, between two hosts and within one.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
a=$dir/A/job
b=$dir/B/job

# The plain form: runs the command and passes its status on.
expect_equal "output" hello "$(flock "$a" echo hello)"
expect_status 5 flock "$a" sh -c 'exit 5'
expect_status 6 flock "$a" -c 'exit 6'
expect_status 7 flock --no-fork "$a" sh -c 'exit 7'

# -x, -s, -n, -E: who excludes whom, on the own host and on the other.
hold writer -x "$a"
expect writer held
for file in "$a" "$b"; do
    expect_status 1 flock -n "$file" true
    expect_status 1 flock -n -s "$file" true
    expect_status 9 flock -n -E 9 "$file" true
    expect_status 9 flock --nonblock --exclusive --conflict-exit-code 9 "$file" true
done
release writer
comes_free "$b"
comes_free "$a"

hold reader-a -s "$a"
hold reader-b --shared "$b"
expect reader-a held
expect reader-b held
expect_status 1 flock -n "$a" true
expect_status 1 flock -n "$b" true
wait_claims job 2 # what was refused is gone
flock -n -s "$a" true
flock -n -s "$b" true
release reader-a
expect_status 1 flock -n "$a" true
release reader-b
comes_free "$a"

# -w: gives up after its time, not before, and leaves nothing behind; or gets the lock when it comes free.
hold writer "$a"
expect writer held
wait_claims job 1
for file in "$a" "$b"; do
    begin=$(now_ms)
    expect_status 1 flock -w 0.5 "$file" true
    expect_status 8 flock --wait 0.5 -E 8 "$file" true
    [ $(($(now_ms) - begin)) -ge 1000 ] || fail "flock -w 0.5 ended too early"
done
wait_claims job 1
start waiter flock -w 60 "$b" echo got
wait_claims job 2
release writer
expect waiter got
finish waiter

wait_claims job 0

# Inherited descriptors: lock, refuse, unlock with -u, lock again.
# shellcheck disable=SC2094
(
    flock -n 9
    expect_status 1 flock -n "$b" true
    flock -u 9
    comes_free "$b"
    flock -x 9
    expect_status 1 flock -n "$a" true
) 9>"$a"
comes_free "$b"

# Conversion on a descriptor: shared to exclusive and back.
exec 8>"$a"
flock -s 8
flock -n -s "$b" true
wait_claims job 1
flock -n -x 8
expect_status 1 flock -n -s "$b" true
flock -s 8
flock -n -s "$b" true
expect_status 1 flock -n -x "$b" true
hold other -s "$b"
expect other held
expect_status 1 flock -n -x 8
release other
flock -u 8
exec 8>&-
comes_free "$b"

# A child left behind keeps the lock through its copy of the descriptor; with -o it does not.
start left flock "$a" sh -c 'sleep infinity & echo $! >"$1"' - "$dir/child"
finish left
read -r child <"$dir/child"
cleanup_fn kill "$child"
expect_status 1 flock -n "$b" true
kill "$child"
wait_until "$deadline" flock -n "$b" true
start left flock -o "$a" sh -c 'sleep infinity & echo $! >"$1"' - "$dir/child"
finish left
read -r child <"$dir/child"
cleanup_fn kill "$child"
comes_free "$b"
kill "$child"
