#!/bin/bash
# Who sends what first, by a trace of the daemon's system calls: when it stops, ZooKeeper is asked to end the session only when the
# last of many holders has been sent the signal of on_lost.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
requires command -v strace

locks=300
start_zookeeper
cat >"$dir/A.ini" <<'ENDINI'
[locks]
on_lost = SIGHUP
ENDINI
signal='pidfd_send_signal(.*SIGHUP'
# A request to ZooKeeper, behind its number: of the type closeSession (-11).
close='send[a-z]*\([0-9]+, "(\\x[0-9a-f]{2}){4}\\xff\\xff\\xff\\xf5", 8'

# begin: a daemon with a holder of all locks, which is traced.
begin() {
    start_dlockfs A --config "$dir/A.ini" --session-timeout 4s
    # shellcheck disable=SC2016 # for that shell
    start holder sh -c 'trap "" HUP; exec "$@"' - "$python" "$tests/system/many_locks.py" hold "$dir/A" 0 "$locks"
    wait_until "$deadline" said holder held
    start tracer strace -f -qq -xx -e trace=pidfd_send_signal,sendto,sendmsg -e signal=none -o "$dir/trace" -p "$(pid A)"
    wait_until "$deadline" grep -q send "$dir/trace" # a heartbeat
}

# before_the_end: how many signals were sent before a session was ended for the first time.
before_the_end() {
    sed -E "/$close/,\$d" "$dir/trace" | grep -c "$signal"
}

begin
stop_dlockfs A
finish tracer 2>/dev/null || true
grep -qE "$close" "$dir/trace" || fail "the servers were not told that the session is over"
expect_equal "signals before the session was ended" "$locks" "$(before_the_end)"
release holder
