#!/bin/bash
# The embedded store needs no server: everything within the host works, two mounts do not know each other, and the log says that
# it is for this host only.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_dlockfs A
start_dlockfs B
grep -qi 'this host only\|host-local' "$dir/A.log" || fail "the log does not say that locks are of this host only"

hold holder "$dir/A/job"
expect holder held
expect_status 1 flock -n "$dir/A/job" true
expect_status 1 flock -n -s "$dir/A/job" true
flock -n "$dir/B/job" true

call waiter1 "$dir/A/job" excl await="$dir/close" close hold
wait_until "$deadline" asleep waiter1
call waiter2 "$dir/A/job" open ex hold
wait_until "$deadline" asleep waiter2
call interrupted "$dir/A/job" open alarm=0.2 ex alarm=0.2 excl
finish interrupted
expect_equal "interrupted" "open ok,alarm ok,ex EINTR,alarm ok,excl EINTR" "$(paste -sd, "$dir/interrupted.out")"
expect_status 1 flock -w 0.2 "$dir/A/job" true
release holder
expect waiter1 "excl ok"
if said waiter2 "ex ok"; then
    violation "two hold"
fi
go close
expect waiter2 "ex ok"
kill -KILL "$(pid waiter2)"
wait_until "$deadline" flock -n "$dir/A/job" true

hold reader1 -s "$dir/A/job"
hold reader2 -s "$dir/A/job"
expect reader1 held
expect reader2 held
release reader1 reader2

for kind in flock open; do
    echo 0 >"$dir/counter"
    "$python" "$tests/lib/counter.py" $kind "$dir/counter" 16 4000 "$dir/A/counter"
    expect_equal "violation: counter with $kind" 4000 "$(<"$dir/counter")"
done
"$python" "$tests/system/calls/names.py" "$dir/A" "$dir/A"

# A user's own lock in a file that is somebody else's: there is no other daemon that could read the order.
if [ "$(id -u)" = 0 ]; then
    call keeper "$dir/A/root" open mode=644 hold
    expect keeper "open ok"
    start holder setpriv --reuid=1234 --clear-groups "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/A/root" catch=SIGUSR1 open-ro ex watch hold
    expect holder "ex ok"
    expect_equal "its user, who may not write the file" ok \
        "$(setpriv --reuid=1234 --clear-groups "$python" "$(for_others "$tests/lib/steer.py")" break "$dir/A" root 1)"
    wait_until "$deadline" grep -q '^watch ERR' "$dir/holder.out"
fi
