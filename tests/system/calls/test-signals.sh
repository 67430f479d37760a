#!/bin/bash
# A signal ends a wait with EINTR and leaves no claim behind; with SA_RESTART the call goes on, keeps waiting and gets the lock.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B; do
    start_dlockfs $host -o linger=1s # more than a busy machine keeps a program from running between two signals
done

for file in "$dir/A/job" "$dir/B/job"; do
    hold holder "$dir/A/job"
    expect holder held
    wait_claims job 1

    # EINTR, for each kind of wait; what comes after on the same handle works.
    call interrupted "$file" open alarm=0.3 ex alarm=0.3 sh sh-nb quiet
    finish interrupted
    expect_equal "flock on $file" \
        "open ok,alarm ok,ex EINTR,alarm ok,sh EINTR,sh-nb EAGAIN,quiet ok" \
        "$(paste -sd, "$dir/interrupted.out")"
    call interrupted "$file" alarm=0.3 excl alarm=0.3 excl excl-nb quiet
    finish interrupted
    expect_equal "exclusive open on $file" \
        "alarm ok,excl EINTR,alarm ok,excl EINTR,excl-nb EEXIST,quiet ok" \
        "$(paste -sd, "$dir/interrupted.out")"
    wait_claims job 1

    # SA_RESTART: many signals come and the wait goes on.
    call restarted "$file" open ticks=0.05 ex quiet hold
    wait_claims job 2
    call behind "$file" open ex hold
    wait_claims job 3
    # Long enough for a good number of signals, and longer than an interrupted place is kept.
    sleep 2
    if said restarted "ex ok" || said restarted "ex EINTR"; then
        fail "SA_RESTART: the wait ended: $(paste -sd, "$dir/restarted.out")"
    fi
    wait_claims job 3
    release holder
    expect restarted "ex ok"
    if said behind "ex ok"; then
        violation "SA_RESTART: two hold the lock"
    fi
    release restarted
    expect behind "ex ok"
    release behind
    wait_claims job 0
done

# The place in the queue survives a restart: a waiter that is interrupted again and again is not overtaken.
hold holder "$dir/A/job"
expect holder held
call restarted "$dir/A/job" open ticks=0.005 ex quiet hold
wait_claims job 2
call behind "$dir/B/job" open ex hold
wait_claims job 3
release holder
expect restarted "ex ok"
if said behind "ex ok"; then
    fail "an interrupted waiter was overtaken"
fi

release restarted behind

# An exclusive open is ended by every signal: the kernel restarts flock(2) on such a file system, but not open(2).
hold holder "$dir/B/job"
expect holder held
call interrupted "$dir/A/job" ticks=0.3 excl quiet
finish interrupted
expect_equal "exclusive open with SA_RESTART" "ticks ok,excl EINTR,quiet ok" "$(paste -sd, "$dir/interrupted.out")"
wait_claims job 1
