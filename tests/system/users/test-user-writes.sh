#!/bin/bash
# How often one user may make the servers write, and how much: calls beyond that wait, fail never, and end by a signal; so do exclusive opens, which
# do not lock the directory meanwhile; nobody else is concerned, and another daemon goes on with those who wait.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

user=12345 other=23456
writes=5 # a second, and ten times as many at once

calls() { # USER-ID KIND COUNT [DIRECTORY]
    timeout "$deadline" "$python" "$(for_others "$tests/system/users/write_calls.py")" "$1" "${4:-$dir/A}" "$2" "$3"
}

start_calls() { # NAME USER-ID KIND COUNT [DIRECTORY]
    start "$1" "$python" "$(for_others "$tests/system/users/write_calls.py")" "$2" "${5:-$dir/A}" "$3" "$4"
}

delayed() { # [HOST]
    sed -n 's/^dlockfs_delayed_writes_total //p' "$dir/${1:-A}/.dlockfs/metrics"
}

delayed_more() { # COUNT [HOST]
    [ "$(delayed "${2:-A}")" -gt "$1" ]
}

waiters() { # HOST USER-ID
    sed -n "s/^uid=$2 waiters=\([0-9]*\) .*/\1/p" "$dir/$1/.dlockfs/users"
}

# one_waits HOST NAME USER-ID DELAYED: the one program of that user has been made to wait, and is never more than one waiter; it is
# looked at again and again.
one_waits() {
    local count look
    wait_until "$deadline" delayed_more "$4" "$1"
    for ((look = 0; look < 20; look++)); do
        alive "$2" || fail "$2 was not held up: $(cat "$dir/$2.out")"
        count=$(waiters "$1" "$3")
        [ "${count:-0}" -le 1 ] || fail "$2, which is one program with one thread, has $count waiters"
    done
}

requires setpriv "--reuid=$user" "--regid=$user" --clear-groups true
printf '%s\n' '[mount]' "user_writes = $writes" >"$dir/writes.ini"
start_kept A --config "$dir/writes.ini"

# So many at once, then so many a second.
took=$(calls "$user" flock "$((10 * writes + 2 * writes))")
[ "$took" -ge 1500 ] || fail "$((12 * writes)) calls in $took ms, at $writes a second and $((10 * writes)) at once"
[ "$(delayed)" -ge "$writes" ] || fail "$(delayed) calls have waited"

# Exclusive opens count, too; and while they wait, others use the directory, and are not limited by them.
before=$(delayed)
start_calls excl "$user" excl 10000
one_waits A excl "$user" "$before"
calls "$other" flock "$((5 * writes))" >/dev/null
calls 0 flock "$((11 * writes))" >/dev/null
calls "$other" excl "$((2 * writes))" >/dev/null
alive excl || fail "exclusive opens were not held up: $(cat "$dir/excl.out")"
kill -KILL "$(pid excl)"
wait_until "$deadline" gone excl

# A signal ends the wait, also SIGKILL.
for number in 1 2 3 4; do
    start_calls "flood-$number" "$user" flock 10000
done
for number in 5 6 7 8; do
    start_calls "flood-$number" "$user" flock "$((2 * writes))"
done
calls "$user" signal 10000 >/dev/null
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

# Exclusive opens of a user who may wait for one call at a time are held up, too: that one is the open itself. So they are in a
# directory of style = file.
printf '%s\n' '[mount]' "user_writes = $writes" 'user_waiters = 1' 'directories = files' '[locks "files"]' 'style = file' \
    >"$dir/waiters.ini"
start_dlockfs B --config "$dir/waiters.ini"
for folder in B B/files; do
    before=$(delayed B)
    start_calls one "$user" excl 10000 "$dir/$folder"
    one_waits B one "$user" "$before"
    kill -KILL "$(pid one)"
    wait_until "$deadline" gone one
done

# What is long counts more: as many calls are within the limit, but not what these write. So they take seconds.
printf '%s\n' '[mount]' 'user_writes = 50' 'directories = files' '[locks "files"]' 'style = file' >"$dir/bytes.ini"
start_dlockfs C --config "$dir/bytes.ini"
start_calls texts "$user" texts 110 "$dir/C/files"
start_calls ranges "$other" ranges 300 "$dir/C"
for name in texts ranges; do
    expect_status 0 finish "$name"
    [ "$(<"$dir/$name.out")" -ge 3000 ] || fail "$name: $(<"$dir/$name.out") ms"
done
