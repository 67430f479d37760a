#!/bin/bash
# How often one user may make the servers write: calls beyond that wait, fail never, and end by a signal; so do exclusive opens, which
# do not lock the directory meanwhile; nobody else is concerned, and another daemon goes on with those who wait.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=kept.sh
. "$tests/system/kept.sh"

user=12345 other=23456
writes=20 # a second, and ten times as many at once

calls() { # USER-ID KIND COUNT
    timeout "$deadline" "$python" "$(for_others "$tests/system/write_calls.py")" "$1" "$dir/A" "$2" "$3"
}

start_calls() { # NAME USER-ID KIND COUNT
    start "$1" "$python" "$(for_others "$tests/system/write_calls.py")" "$2" "$dir/A" "$3" "$4"
}

waits() { # USER-ID: a call of that user waits
    grep -q "^uid=$1 waiters=1 " "$dir/A/.dlockfs/users"
}

delayed() {
    sed -n 's/^dlockfs_delayed_writes_total //p' "$dir/A/.dlockfs/metrics"
}

requires setpriv "--reuid=$user" "--regid=$user" --clear-groups true
printf '%s\n' '[mount]' "user_writes = $writes" >"$dir/writes.ini"
start_kept A --config "$dir/writes.ini"

# So many at once, then so many a second.
took=$(calls "$user" flock "$((10 * writes + 2 * writes))")
[ "$took" -ge 1500 ] || fail "$((12 * writes)) calls in $took ms, at $writes a second and $((10 * writes)) at once"
[ "$(delayed)" -ge "$writes" ] || fail "$(delayed) calls have waited"

# Exclusive opens count, too; and while they wait, others use the directory, and are not limited by them.
start_calls excl "$user" excl 10000
wait_until "$deadline" waits "$user"
calls "$other" flock 100 >/dev/null
calls 0 flock "$((11 * writes))" >/dev/null
calls "$other" excl 50 >/dev/null
alive excl || fail "exclusive opens were not held up: $(cat "$dir/excl.out")"
kill -KILL "$(pid excl)"
wait_until "$deadline" gone excl

# A signal ends the wait, also SIGKILL.
for number in 1 2 3 4 5 6 7 8; do
    start_calls "flood-$number" "$user" flock 40
done
calls "$user" signal 200 >/dev/null
for number in 1 2 3 4; do
    kill -KILL "$(pid "flood-$number")"
    wait_until "$deadline" gone "flood-$number"
done

# The next daemon refuses none of those that wait.
crash A
for name in flood-5 flood-6 flood-7 flood-8; do
    wait_until "$deadline" gone "$name"
    [[ "$(cat "$dir/$name.out")" =~ ^[0-9]+$ ]] || fail "$name: $(cat "$dir/$name.out")"
done
