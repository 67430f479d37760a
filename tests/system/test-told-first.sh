#!/bin/bash
# Who sends what first, by a trace of the daemon's system calls: when it stops, ZooKeeper is asked to end the session only when the
# last of many holders has been sent the signal of on_lost.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
requires command -v strace

holders=100 # each is sent a signal of its own
start_zookeeper
cat >"$dir/A.ini" <<'ENDINI'
[locks]
on_lost = SIGHUP
ENDINI
signal='pidfd_send_signal(.*SIGHUP'
# A request to ZooKeeper, behind its number: of the type closeSession (-11).
close='send[a-z]*\([0-9]+, "(\\x[0-9a-f]{2}){4}\\xff\\xff\\xff\\xf5", 8'

# So many processes with a lock each, which end with the first one.
# shellcheck disable=SC2016 # for Python
hold='
import fcntl, os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
ready, end = os.pipe(), os.pipe()
for number in range(int(sys.argv[2])):
    if os.fork() == 0:
        os.close(end[1])
        fd = os.open(f"{sys.argv[1]}/job-{number}", os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(ready[1], b"x")
        os.read(end[0], 1)
        os._exit(0)
for number in range(int(sys.argv[2])):
    os.read(ready[0], 1)
print("held", flush=True)
signal.pause()'

# begin: a daemon with the holders, which is traced.
begin() {
    start_dlockfs A --config "$dir/A.ini" --session-timeout 4s
    start holder "$python" -c "$hold" "$dir/A" "$holders"
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
expect_equal "signals before the session was ended" "$holders" "$(before_the_end)"
release holder
