#!/bin/bash
# unlink takes a name away on the host, the lock stays: a file made anew is the same lock, for holders, waiters and
# other hosts; record locks go with any close of it.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

call holder "$dir/A/job" open ex unlink await="$dir/un" un close hold
expect holder "unlink ok"
expect_status 1 test -e "$dir/A/job"
for host in A B; do
    expect_status 1 flock -n "$dir/$host/job" true
done
wait_claims job 1
call waiter "$dir/A/job" open ex hold
wait_claims job 2
rm "$dir/A/job"
expect_status 1 flock -n "$dir/A/job" true
go un
expect waiter "ex ok"
expect_status 1 flock -n "$dir/A/job" true
expect_status 1 flock -n "$dir/B/job" true
release waiter holder

# What a process has locked through the old file, it releases through the new one too, by an unlock or a close.
call record "$dir/A/job" open w:0-9 w:20-29 unlink open u:0-9 await="$dir/close" close hold
expect record "u:0-9 ok"
comes_free_for() { # RANGE
    "$python" "$tests/lib/calls.py" "$dir/B/job" open "w-nb:$1" | finds -x "w-nb:$1 ok"
}
wait_until "$deadline" comes_free_for 0-9
if comes_free_for 9-20; then
    fail "a range went with another one"
fi
go close
expect record "close ok"
wait_until "$deadline" comes_free_for 0-
release record

# The classic pattern: open, lock, work, unlink, close, by many at once; the file's identity never splits in two.
cat >"$dir/classic.py" <<'END'
import fcntl, os, sys
lock, counter, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(times):
    fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with open(counter) as file:
        number = int(file.read())
    with open(counter, "w") as file:
        file.write(str(number + 1))
    try:
        os.unlink(lock)
    except FileNotFoundError:
        pass
    os.close(fd)
END
echo 0 >"$dir/counter"
for number in 1 2 3 4 5 6; do
    host=A
    [ $((number % 2)) -eq 0 ] || host=B
    start "classic$number" "$python" "$dir/classic.py" "$dir/$host/classic" "$dir/counter" 50
done
for number in 1 2 3 4 5 6; do
    finish "classic$number"
done
expect_equal "violation: counter" 300 "$(<"$dir/counter")"
