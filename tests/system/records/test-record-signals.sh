#!/bin/bash
# A signal ends a wait for a record lock with EINTR at any stage and leaves nothing behind; what the process held before, it
# still holds; with SA_RESTART the wait goes on. kill -9 of a waiter and of a holder frees what they had.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B; do
    start_dlockfs $host --session-timeout 60s -o linger=1s # as in test-signals.sh
done

for file in "$dir/A/job" "$dir/B/job"; do
    call holder "$dir/A/job" open w:0-10 hold
    expect holder "w:0-10 ok"
    wait_claims job 1

    # EINTR, for each kind of wait; what comes after on the same handle works.
    call interrupted "$file" open alarm=0.3 w:5-20 w-nb:11-20 u:0- alarm=0.3 ofd-r:0-0 alarm=0.3 lockf=5 \
        alarm=0.3 w:0- w-nb:5-5 quiet
    finish interrupted
    expect_equal "on $file" \
        "open ok,alarm ok,w:5-20 EINTR,w-nb:11-20 ok,u:0- ok,alarm ok,ofd-r:0-0 EINTR,alarm ok,lockf EINTR,\
alarm ok,w:0- EINTR,w-nb:5-5 EAGAIN,quiet ok" "$(paste -sd, "$dir/interrupted.out")"
    wait_claims job 1

    # An upgrade and an extension that are interrupted: what was held is still held, for reading.
    call reader "$dir/A/job" open r:20-30 hold
    expect reader "r:20-30 ok"
    call interrupted "$file" open r:20-25 w:40-50 alarm=0.3 w:20-25 alarm=0.3 w:10-41 quiet await="$dir/go" u:0- hold
    expect interrupted "quiet ok"
    expect_equal "upgrade on $file" "w:20-25 EINTR,w:10-41 EINTR" "$(grep EINTR "$dir/interrupted.out" | paste -sd,)"
    call try "$dir/B/job" open r:20-20 w-nb:20-20 r-nb:40-40 get-w:0-60
    finish try || fail "try did not end"
    release reader
    wait_until "$deadline" grep -q '^r:20-20 ok' "$dir/try.out"
    grep -qx 'w-nb:20-20 EAGAIN' "$dir/try.out" || fail "the interrupted upgrade lost what it had: $(<"$dir/try.out")"
    grep -qx 'r-nb:40-40 EAGAIN' "$dir/try.out" || fail "the interrupted extension lost what it had: $(<"$dir/try.out")"
    go go
    expect interrupted "u:0- ok"
    release interrupted
    rm "$dir/go"
    wait_claims job 1

    # SA_RESTART: many signals come, the wait goes on, and its place is kept.
    call restarted "$file" open ticks=0.05 w:0-5 quiet hold
    wait_claims job 2
    call behind "$file" open w:3-8 hold
    wait_claims job 3
    sleep 2 # a good number of signals, and longer than an interrupted place is kept
    if said restarted "w:0-5 ok" || said restarted "w:0-5 EINTR"; then
        fail "SA_RESTART: the wait ended: $(paste -sd, "$dir/restarted.out")"
    fi
    wait_claims job 3
    kill -KILL "$(pid holder)"
    expect restarted "w:0-5 ok"
    if said behind "w:3-8 ok"; then
        violation "SA_RESTART: two hold the lock"
    fi

    # kill -9 of a waiter: it ends at once and the one behind it is not let in; then of the holder.
    call last "$dir/B/job" open w:8-8 hold
    wait_claims job 3
    kill -KILL "$(pid behind)"
    wait_until "$prompt" gone behind
    expect last "w:8-8 ok"
    call waiter "$dir/A/job" open r:0-8 hold
    wait_claims job 3
    kill -KILL "$(pid last)"
    wait_claims job 2
    if said waiter "r:0-8 ok"; then
        violation "granted beside the one who still holds"
    fi
    kill -KILL "$(pid restarted)"
    expect waiter "r:0-8 ok"
    release waiter
    wait_claims job 0
    for name in holder behind last restarted; do
        finish "$name" 2>/dev/null || true
    done
done

# Signals at any moment: while the claim is being made, while it waits, when it is granted.
steps=()
for ((number = 0; number < 60; number++)); do
    steps+=("alarm=0.00$((number % 10))$((number * 7 % 9 + 1))" "w:$((number % 7))-9" u:5- u:0-)
done
for number in 1 2 3; do
    call "storm-a$number" "$dir/A/storm" open "${steps[@]}" quiet close
    call "storm-b$number" "$dir/B/storm" open "${steps[@]}" quiet close
done
for number in 1 2 3; do
    for host in a b; do
        finish "storm-$host$number"
        expect_equal "steps" 0 "$(grep -c -v ' ok$\| EINTR$\|^quiet' "$dir/storm-$host$number.out" || true)"
    done
done
echo "granted, interrupted: $(cat "$dir"/storm-*.out | grep '^w:' | sort -k2 | cut -d' ' -f2 | uniq -c | paste -sd' ')"
wait_claims storm 0
call after "$dir/B/storm" open w-nb:0- close
finish after
expect_equal "after" "open ok,w-nb:0- ok,close ok" "$(paste -sd, "$dir/after.out")"
