#!/bin/bash
# kill -9 of a daemon whose service manager keeps descriptors: who holds and who waits, in all ways and on two hosts, does not
# notice, and the order of the queue stays; nor is SIGUSR1 noticed. Only a session that ends meanwhile is lost. What cannot be
# gone on with is given up in one line, and nothing is kept of a daemon that is stopped.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/hold-all.sh
. "$tests/lib/hold-all.sh"

start_zookeeper
printf '%s\n' '[locks "kept"]' 'keep = 1d' 'handoff = 3' '[locks "told"]' 'on_lost = SIGTERM' \
    '[locks "folder/long"]' 'text_limit = 1048576' >"$dir/A.ini"
start_kept A --session-timeout 20s --config "$dir/A.ini"
start_kept B --session-timeout 20s

# numbers HOST: what its status says, but for what belongs to the process or the servers.
numbers() {
    grep -v '^pid=\|^uptime_s=\|^lease_left_ms=\|^names=\|^root_names=\|^hosts=' "$dir/$1/.dlockfs/status" | sed '/^oldest_/s/ for_s=.*//'
}

# begun_anew HOST TEXT: a daemon has begun anew, for that reason, and is ready.
begun_anew() {
    sed -n "/^dlockfs: error: .*$2.*; beginning anew: /,\$p" "$dir/$1.log" | finds ' is ready; '
}

hold_all
# Who looks on, a name without a file, and a directory.
call looks "$dir/A/flock" open watch
mkdir "$dir/A/folder" "$dir/B/folder"
call unlinked "$dir/A/folder/unlinked" open write=text ex unlink hold
expect unlinked "unlink ok"
echo "text of a file" >"$dir/A/folder/named"
head -c 300001 /dev/urandom >"$dir/long"
cat "$dir/long" >"$dir/A/folder/long"
survives A yes
before=$(claims)
status=$(numbers A)

for host in A B A; do
    crash "$host"
    restart_kept "$host"
done
leave B
# Those that fail before they can go on leave all as it is.
echo 6 7 9 >"$dir/B.limits"
crash B
# Where each fails depends on how many the store's thread has opened by then.
expect_equal "what has failed" 3 "$(grep -c 'error: \(opening the store\|starting\|starting .*process.*\): Too many open files$' "$dir/B.log")"
expect_equal "limits to come" "" "$(cat "$dir/B.limits")"
# A service manager that could not be told is told later.
mv "$dir/B.notify" "$dir/B.away"
send_signal B USR2
wait_until "$deadline" survives B no
mv "$dir/B.away" "$dir/B.notify"
wait_until "$deadline" survives B yes
# While nothing can be known of the servers; and while there is no daemon a call waits for the next one.
exec {opened}<"$dir/A/.dlockfs/status"
pause zk
start looking cat "$dir/A/.dlockfs/queues"
wait_until "$deadline" asleep looking
crash A
resume zk
# Who looks on is answered by the next one, if only with an error. What was opened before has nothing to show.
finish looking || finds 'Connection timed out$' "$dir/looking.out"
expect_status 1 cat <&"$opened" 2>/dev/null
exec {opened}<&-
pause manager-A
send_signal A KILL
call meanwhile "$dir/A/meanwhile" open ex
wait_until "$deadline" asleep meanwhile
resume manager-A
expect meanwhile "ex ok"
finish meanwhile
connected() {
    grep -q '^session=connected' "$dir/A/.dlockfs/status"
}
wait_until "$deadline" connected
comes_free "$dir/B/meanwhile"
wait_claims meanwhile 0
expect_equal "claims" "$before" "$(claims)"
expect_equal "status" "$status" "$(numbers A)"

# Everything is as it was.
read -r text <"$dir/A/folder/named"
expect_equal "text" "text of a file" "$text"
cmp "$dir/long" "$dir/A/folder/long"
all_hold
expect_status 1 flock -n "$dir/B/folder/unlinked" true
release unlinked
comes_free "$dir/B/folder/unlinked"

# A lock is taken away from a host that does not react; the daemon which has told it to is killed before it does.
call broken "$dir/B/broken" open ex hold
expect broken "ex ok"
pause B
pause manager-A
start order "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address)" wait-text /dlockfs/broken break= "$deadline"
expect order looking
start breaking "$python" "$tests/lib/steer.py" break "$dir/A" broken 1
finish order
send_signal A KILL # while it leaves the other host its time: later it would have done it itself
resume B
wait_claims broken 0
resume manager-A
finish breaking
expect_equal "breaking it" ok "$(<"$dir/breaking.out")"
release broken

# A signal reaches a call that another daemon has begun to wait for. The rest goes in the order of the queue.
call late "$dir/A/flock" catch=SIGUSR1 open ex
queued flock 5
crash A
send_signal late USR1
expect late "ex EINTR"
queued flock 4
release_all crash A
if grep 'lost\|giving it up\|expired\|beginning anew' "$dir/"[AB].log | grep -v 'connection to ZooKeeper\|: broken: '; then
    fail "something was lost"
fi

# What cannot be gone on with: with SIGUSR1 the daemon knows it, and releases all locks; after a kill they are free when the
# session is over.
keep last "$dir/A/last" flock
wait_until "$deadline" granted last
printf '%s\n' '[store "other"]' 'url = local:' >>"$dir/A.ini"
send_signal manager-A USR1
wait_until "$deadline" grep -q ' does not take over: \[store\]: .*; this program releases all locks and ends$' "$dir/A.log"
comes_free "$dir/B/last"
wait_until "$deadline" fenced last
wait_until "$deadline" grep -q '/other is in a store of its own' "$dir/A.log"
crash A
sed -i '$d' "$dir/A.ini"
sed -i '$d' "$dir/A.ini"
send_signal A KILL
wait_until "$deadline" begun_anew A '\[store\]: '
stop_kept A
release waits waits-B token last looks

# A session that ends before there is another daemon, and without a guard: holders are told, waiting calls queue again.
(umask 077 && echo hosts:secret >"$dir/secret")
printf '%s\n' '[store]' "digest_file = $dir/secret" 'acl = open' '[locks "told-too"]' 'on_lost = SIGTERM' >"$dir/C.ini"
start_kept C --session-timeout 10s --config "$dir/C.ini"
keep lost "$dir/C/lost" flock
wait_until "$deadline" granted lost
keep behind "$dir/C/lost" flock
wait_claims lost 2
call told "$dir/C/told-too" catch=SIGTERM open ex watch
expect told "ex ok"
# Of one that was granted and has not been told yet.
call untold "$dir/C/untold" open await="$dir/ask" ex
expect untold "open ok"
start tracer "$python" "$tests/lib/stop_at_request.py" "$(pid C)" answer
expect tracer attached
go ask
expect tracer stopped
wait_claims untold 1
pause manager-C
guard=$(guards_of C)
process_record "$dir" guard-C "$guard" # which would end the mount
kill -STOP "$guard"
send_signal C KILL
finish tracer
wait_claims lost 0
resume manager-C
expect untold "ex EIO"
finish untold
wait_until "$deadline" fenced lost
grep -q '^fenced EIO ' "$dir/lost.out"
kill -CONT "$guard"
wait_until "$deadline" grep -q '^watch .*ERR' "$dir/told.out"
wait_until "$deadline" granted behind
not_fenced behind
never_revived lost
wait_until "$deadline" grep -q '^caught SIGTERM ' "$dir/told.out"
session=$(sed -n '/^dlockfs: connected to .*, session /{s/.*, session \(0x[0-9a-f]*\),.*/\1/p;q}' "$dir/C.log")
wait_until "$deadline" grep -q "ZooKeeper session $session has expired\$" "$dir/C.log"

# One bit of what is kept is another one. Nothing of it is believed, and the lock is free when the session is over.
start_dlockfs D --session-timeout 10s
call next "$dir/D/lost" open ex hold
wait_claims lost 2
send_signal C STOP
"$python" - "$(pid C)" <<'END'
import os, struct, sys
folder = f"/proc/{sys.argv[1]}/fd"
state = [name for name in os.listdir(folder) if "dlockfs journal" in os.readlink(f"{folder}/{name}")]
with open(f"{folder}/{state[0]}", "r+b", buffering=0) as file:
    # src/journal/form.h: which extent counts, and of that the last byte of the log
    (current,) = struct.unpack("I", os.pread(file.fileno(), 4, 20))
    _, _, end = struct.unpack("QQQ", os.pread(file.fileno(), 24, 24 + 56 * (current - 1)))
    byte = os.pread(file.fileno(), 1, end - 1)[0]
    os.pwrite(file.fileno(), bytes([byte ^ 4]), end - 1)
END
if said next "ex ok"; then
    violation "two hosts hold the lock"
fi
send_signal C KILL
wait_until "$deadline" begun_anew C 'what another process has kept cannot be read: a checksum does not match'
expect next "ex ok"
release next
stop_dlockfs D
wait_until "$deadline" fenced behind
grep -q '^fenced ENOTCONN \|^fenced ECONNABORTED ' "$dir/behind.out"
# Others end again and again before they can go on: their secret is not there.
hold again "$dir/C/again"
expect again held
rm "$dir/secret"
send_signal C KILL
wait_until "$deadline" grep -q 'error: 8 processes have failed to go on with the mount; beginning anew: ' "$dir/C.log"
printf '%s\n' '[store]' 'session_timeout = 3s' >"$dir/C.ini"
wait_until "$deadline" begun_anew C '8 processes have failed'
release lost behind told again
# By hand it is an end as any other.
umount "$dir/C"
finish manager-C
expect_equal "what is kept of C" "left" "$(tail -n 1 "$dir/manager-C.out")"

# Locks of this host only.
store=local:
start_kept D
hold local "$dir/D/lock"
expect local held
call second "$dir/D/lock" open ex hold
wait_until "$deadline" asleep second
call third "$dir/D/lock" open sh hold
wait_until "$deadline" asleep third
call part "$dir/D/part" open w:0-9 hold
expect part "w:0-9 ok"
crash D
expect_status 1 flock -n "$dir/D/lock" true
call parts "$dir/D/part" open w-nb:5-5 w-nb:10-19
expect parts "w-nb:5-5 EAGAIN"
expect parts "w-nb:10-19 ok"
release local
expect second "ex ok"
crash D
release second
expect third "sh ok"
release third part
comes_free "$dir/D/lock"
stop_kept D
stop_kept B
