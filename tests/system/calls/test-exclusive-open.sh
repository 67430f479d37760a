#!/bin/bash
# open(O_CREAT|O_EXCL) waits for the lock, holds it until the last duplicate is closed, and with O_NONBLOCK says EEXIST.
# It excludes flock on the same name, and the other way round, on the own host and on another.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

call holder "$dir/A/job" excl await="$dir/close" close hold
expect holder "excl ok"
for host in A B; do
    call try "$dir/$host/job" excl-nb open ex-nb sh-nb
    finish try
    expect_equal "while it is held, on $host" "excl-nb EEXIST,open ok,ex-nb EAGAIN,sh-nb EAGAIN" "$(paste -sd, "$dir/try.out")"
done
wait_claims job 1

call waiter-b "$dir/B/job" excl hold
wait_claims job 2
call waiter-a "$dir/A/job" excl hold
wait_claims job 3
wait_until "$deadline" asleep waiter-a
if said waiter-b "excl ok" || said waiter-a "excl ok"; then
    fail "a waiter got what is held"
fi
go close
expect holder "close ok"
expect waiter-b "excl ok"
if said waiter-a "excl ok"; then
    violation "the second waiter came first or both hold"
fi
release waiter-b
expect waiter-a "excl ok"
expect_status 1 flock -n "$dir/A/job" true
expect_status 1 flock -n "$dir/B/job" true
release waiter-a
wait_claims job 0

# Nobody holds: at once, also with O_NONBLOCK, and again and again.
call again "$dir/A/job" excl-nb close excl close excl-nb close excl
finish again
expect_equal "free" "excl-nb ok,close ok,excl ok,close ok,excl-nb ok,close ok,excl ok" "$(paste -sd, "$dir/again.out")"

# flock holds, exclusive open waits.
hold flock "$dir/B/job"
expect flock held
call waiter "$dir/A/job" excl hold
wait_claims job 2
release flock
expect waiter "excl ok"
release waiter

# A file that is open on the host without a lock is no obstacle.
exec 8>"$dir/A/job"
call open-elsewhere "$dir/A/job" excl close excl-nb close
finish open-elsewhere
expect_equal "open without lock" "excl ok,close ok,excl-nb ok,close ok" "$(paste -sd, "$dir/open-elsewhere.out")"
exec 8>&-

# A handle that holds by exclusive open may take flock as well: no conflict with itself; close ends what both hold.
call both "$dir/A/job" excl ex-nb await="$dir/both" close hold
expect both "ex-nb ok"
expect_status 1 flock -n "$dir/B/job" true
go both
expect both "close ok"
comes_free "$dir/B/job"

# The shell's noclobber is an exclusive open.
hold flock "$dir/B/shell"
expect flock held
start noclobber bash -c 'set -C; exec 9>"$1" && echo got && exec sleep infinity' - "$dir/A/shell"
wait_claims shell 2
release flock
expect noclobber got
expect_status 1 flock -n "$dir/B/shell" true
