#!/bin/bash
# Who sends what first, by a trace of the daemon's system calls: the servers are asked to end the session, on ZooKeeper by closeSession
# and on etcd by LeaseRevoke, only when the last of many holders has been sent the signal of on_lost. That is so when the daemon stops,
# and when its lease is over while it is connected.

# Of a daemon that is not root, the guard signals whom a warden that is slow, as strace makes it, does not; the guard is stopped here.
export DAEMON_USER=root
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires command -v strace

requires type -P etcd

holders=300 # each is sent a signal of its own
timeout_s=4
cat >"$dir/A.ini" <<'ENDINI'
[locks]
on_lost = SIGHUP
ENDINI
signal='pidfd_send_signal(.*SIGHUP'

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

# end_of_session: an expression for the line of the trace that sends it, to the service that the daemon is connected to.
end_of_session() {
    local lease
    lease=$(sed -n 's/^store=etcd:.*, lease \([0-9a-f]*\),.*/\1/p' "$dir/A/.dlockfs/status")
    if [ -z "$lease" ]; then
        # A request to ZooKeeper, behind its number: of the type closeSession (-11).
        printf '%s\n' '"(\\x[0-9a-f]{2}){4}\\xff\\xff\\xff\\xf5", 8'
        return
    fi
    # A request to etcd with nothing but the number of the lease: all there is to its stream (HTTP/2's END_STREAM), so no keep-alive.
    "$python" -c '
import sys
number, message = int(sys.argv[1], 16), b"\x08"
while number:
    message += bytes([number & 127 | (128 if number > 127 else 0)])
    number >>= 7
def text(data):
    return "".join(f"\\\\x{byte:02x}" for byte in data)
print(text(bytes([0, 0, len(message) + 5, 0, 1])) + r"(\\x[0-9a-f]{2}){4}" + text(bytes([0, 0, 0, 0, len(message)]) + message))' "$lease"
}

# begin: a daemon with the holders, which is traced.
begin() {
    start_dlockfs A --config "$dir/A.ini" --session-timeout ${timeout_s}s
    start holder "$python" -c "$hold" "$dir/A" "$holders"
    wait_until "$deadline" said holder held
    end=$(end_of_session)
    rm -f "$dir/trace"
    start tracer strace -f -qq -xx -s 4096 -e trace=pidfd_send_signal,sendto,sendmsg -e signal=none -o "$dir/trace" -p "$(pid A)"
    wait_until "$deadline" grep -qs send "$dir/trace" # a heartbeat
}

# told_first WHEN: what the trace says.
told_first() {
    grep -qE "$end" "$dir/trace" || fail "${store%%:*}, $1: the servers were not told that the session is over"
    expect_equal "${store%%:*}, $1: signals before the session was ended" "$holders" \
        "$(sed -E "/$end/,\$d" "$dir/trace" | grep -c "$signal")"
}

# suspend_for MILLISECONDS: the daemon; and the guard for longer, so that the daemon alone tells.
suspend_for() {
    suspend A
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
    resume A
}

# suspend_until_lost: as long as the lease lasts, and a little longer; begun when it is as short as it gets while the session is well.
# ZooKeeper's library gives the connection up when it has read nothing for two thirds of the timeout, and then there is nobody to ask.
suspend_until_lost() {
    local lasts_ms=0 look
    for ((look = 0; look < 500; look++)); do
        lasts_ms=$(sed -n 's/^lease_left_ms=//p' "$dir/A/.dlockfs/status")
        [ "$lasts_ms" -ge $((timeout_s * 640)) ] || break
    done
    suspend_for $((lasts_ms + timeout_s * 12))
}

# loses_session COMMAND: the daemon finds that its lease is over, and asks the servers to end the session. Fails if it does not within
# ten seconds.
loses_session() {
    local asks=1 look
    begin
    "$@"
    for ((look = 0; look < 100 && asks != 0; look++)); do
        sleep 0.1
        grep -qE "$end" "$dir/trace" && asks=0
    done
    [ $asks -ne 0 ] || told_first "a lost lease"
    release tracer
    awake A
    release holder
    stop_dlockfs A
    return $asks
}

stops() {
    begin
    stop_dlockfs A
    finish tracer 2>/dev/null || true
    told_first "a stop"
    release holder
}

start_zookeeper
stops
timeout_s=12
for try in {1..10}; do
    ! loses_session suspend_until_lost || break
    [ "$try" -lt 10 ] || fail "ZooKeeper was never asked to end a session whose lease is over"
done
echo "ZooKeeper was asked to end a session whose lease was over, the $try. time"
start_etcd
stops
timeout_s=4
loses_session suspend_for $((timeout_s * 1000)) || fail "etcd was not asked to end a session whose lease is over"
