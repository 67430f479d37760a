#!/bin/bash
# .dlockfs shows the daemon and the queues of all hosts: the same text on every host, what other clients and hostile ones
# put there included; nothing there can be changed, and usual programs work on it.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# host_b ARGUMENT...: the daemon of a host with another name.
cat >"$dir/host_b" <<END
#!/bin/sh
exec unshare --uts sh -c 'hostname host-b && exec "\$@"' - "$dlockfs" "\$@"
END
chmod +x "$dir/host_b"

# claim KEY FILE POSITION: the value of a key in the line of a claim.
claim() {
    sed -n "s/^position=$3 .* $1=\([^ ]*\).*/\1/p; s/^position=$3 $1=\([^ ]*\).*/\1/p" "$2"
}

# status HOST KEY
status() {
    sed -n "s/^$2=//p" "$dir/$1/.dlockfs/status"
}

start_zookeeper
start_dlockfs A
dlockfs=$dir/host_b start_dlockfs B

# What the guard has made sure of is what the kernel says. A daemon that may not set priorities has a guard without one.
printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_nice %q "$@"\n' "$dlockfs" >"$dir/not_nice"
chmod +x "$dir/not_nice"
shows_guard() { # shows_guard HOST
    local guard words=watches
    guard=$(guards_of "$1") || return 1
    [[ $(chrt -p "$guard") != *SCHED_RR* ]] || words+=,realtime
    [ "$(<"/proc/$guard/oom_score_adj")" -gt -900 ] || words+=,spared
    [[ $(status "$1" guard) =~ ^$words(,locked)?$ ]]
}
dlockfs=$dir/not_nice start_dlockfs C
wait_until "$deadline" shows_guard A
wait_until "$deadline" shows_guard C
! status C guard | finds realtime || fail "a guard that may not set its priority has one"
stop_dlockfs C
expect_equal "nothing yet" "" "$(soon cat "$dir/A/.dlockfs/queues")"
expect_equal "no names yet" "" "$(soon ls -A "$dir/A/.dlockfs/locks")"

# A holder and a waiter on two hosts.
hold holder "$dir/A/job"
expect holder held
call waiter "$dir/B/job" open sh hold
wait_claims job 2
cat "$dir/A/.dlockfs/locks/job" >"$dir/job.A"
cat "$dir/B/.dlockfs/locks/job" >"$dir/job.B"
cmp "$dir/job.A" "$dir/job.B"
expect_equal "the lock" "lock=job claims=2 holders=1" "$(head -n 1 "$dir/job.A")"
expect_equal "states" "held waiting" "$(claim state "$dir/job.A" 1) $(claim state "$dir/job.A" 2)"
expect_equal "modes" "exclusive shared" "$(claim mode "$dir/job.A" 1) $(claim mode "$dir/job.A" 2)"
expect_equal "hosts" "$(hostname) host-b" "$(claim host "$dir/job.A" 1) $(claim host "$dir/job.A" 2)"
expect_equal "processes" "$(pid holder) $(pid waiter)" "$(claim pid "$dir/job.A" 1) $(claim pid "$dir/job.A" 2)"
expect_equal "commands" "flock python3" "$(claim command "$dir/job.A" 1) $(claim command "$dir/job.A" 2)"
expect_equal "kinds" "flock flock" "$(claim kind "$dir/job.A" 1) $(claim kind "$dir/job.A" 2)"
expect_equal "clients" "dlockfs dlockfs" "$(claim client "$dir/job.A" 1) $(claim client "$dir/job.A" 2)"
expect_equal "claims" "$(zookeeper claims /dlockfs/job)" "$(claim claim "$dir/job.A" 1; claim claim "$dir/job.A" 2)"
age=$(($(date +%s) - $(claim since "$dir/job.A" 1)))
if [ "$age" -lt -1 ] || [ "$age" -gt 60 ]; then
    fail "placed $age s ago"
fi

# This daemon.
expect_equal "status of A" "connected 1 0 0 $(pid A) $dir/A $(hostname) yes" \
    "$(status A session) $(status A holders) $(status A waiters) $(status A fenced) $(status A pid) \
$(status A mountpoint) $(status A host) $(status A exclusive_open_waits)"
expect_equal "status of B" "connected 0 1 host-b" \
    "$(status B session) $(status B holders) $(status B waiters) $(status B host)"
status A store | finds -F "$store connected to $(zookeeper_address)"
[ "$(status A lease_left_ms)" -gt 0 ]
expect_equal "version" "$("$dlockfs" --version)" "dlockfs $(status A version)"

# Of a thread, the process is shown.
cat >"$dir/thread.py" <<'END'
import fcntl, sys, threading, time

def lock():
    file = open(sys.argv[1], "a")
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(1000)

threading.Thread(target=lock).start()
END
start thread "$python" "$dir/thread.py" "$dir/A/thread"
expect thread held
cat "$dir/B/.dlockfs/locks/thread" >"$dir/thread.A"
expect_equal "a thread's process" "$(pid thread) python3" "$(claim pid "$dir/thread.A" 1) $(claim command "$dir/thread.A" 1)"
release thread
wait_claims thread 0

# A process with two ranges, an exclusive open, and a lock with others below it and claims of other clients.
call ranges "$dir/B/records" open w-nb:0-9 r-nb:100-199 hold
expect ranges "r-nb:100-199 ok"
call opener "$dir/A/made" excl hold
expect opener "excl ok"
mkdir -p "$dir/A/cron/deep"
hold nested "$dir/A/cron/deep/backup"
expect nested held
start other "$python" -u "$tests/lib/zookeeper.py" "$(zookeeper_address)" hold /dlockfs/cron lock- $'format=1\nhost=x\n'
wait_until "$deadline" test -s "$dir/other.out"
start reader "$python" -u "$tests/lib/zookeeper.py" "$(zookeeper_address)" hold /dlockfs/cron read-
wait_until "$deadline" test -s "$dir/reader.out"
name=$'100% \n\xff'
hold strange "$dir/A/$name"
expect strange held
cat "$dir/B/.dlockfs/locks/records" >"$dir/records"
expect_equal "ranges" "record held w0-9 record held r100-199" \
    "$(for n in 1 2; do for key in kind state ranges; do claim $key "$dir/records" $n; done; done | paste -sd' ')"
expect_equal "kind of an exclusive open" open "$(claim kind <(cat "$dir/B/.dlockfs/locks/made") 1)"
cat "$dir/B/.dlockfs/locks/cron/.queue" >"$dir/cron"
expect_equal "other clients" \
    "held exclusive other $(<"$dir/other.out") waiting shared other $(<"$dir/reader.out")" \
    "$(for n in 1 2; do for key in state mode client claim; do claim $key "$dir/cron" $n; done; done | paste -sd' ')"
if grep -q host= "$dir/cron"; then
    fail "believes what another client says: $(<"$dir/cron")"
fi
cat "$dir/A/.dlockfs/queues" >"$dir/queues.A"
cat "$dir/B/.dlockfs/queues" >"$dir/queues.B"
cmp "$dir/queues.A" "$dir/queues.B"
expect_equal "locks" "100%25%20%0A%FF cron cron/deep/backup job made records" \
    "$(sed -n 's/^lock=\([^ ]*\) .*/\1/p' "$dir/queues.A" | paste -sd' ')"
grep -qx 'lock=100%25%20%0A%FF claims=1 holders=1' "$dir/B/.dlockfs/locks/$name"

# Usual programs.
cd "$dir/B/.dlockfs"
expect_equal "find" "cron cron/.queue cron/deep cron/deep/backup job made records" \
    "$(find locks -mindepth 1 ! -name '100*' ! -name thread -printf '%P\n' | sort | paste -sd' ')"
expect_equal "find -type f" 6 "$(find locks -type f ! -name thread -print0 | tr -dc '\0' | wc -c)"
soon ls -lR >"$dir/ls.out"
grep -q '^-r--r--r-- .* backup$' "$dir/ls.out"
grep -q '^dr-xr-xr-x .* cron$' "$dir/ls.out"
expect_equal "find -printf" "d locks,f hosts,f jobs,f metrics,f queues,f status,f users" "$(find . -mindepth 1 -maxdepth 1 -printf '%y %f\n' | sort | paste -sd,)"
expect_equal "grep -r" "locks/cron/deep/backup:lock=cron/deep/backup claims=1 holders=1" "$(grep -r '^lock=cron/deep' locks)"
expect_equal "stat" "regular empty file 444 0 directory 555 0" "$(stat -c '%F %a %u' locks/job locks/cron | paste -sd' ')"
expect_equal "the same inode" "$(stat -c %i locks/job)" "$(stat -c %i "$dir/A/.dlockfs/locks/job")"
expect_status 1 test -e locks/nothing
expect_status 1 test -e locks/job/nothing
expect_status 1 test -e locks/cron/deep/.queue
expect_status 1 test -e nothing
cp locks/job "$dir/copy"
tail -n 1 locks/job >"$dir/tail.out"
[ -s "$dir/copy" ] && [ -s "$dir/tail.out" ]
# What was opened stays as it was; what is opened anew is new.
exec 8<locks/job
release waiter
wait_claims job 1
expect_equal "as of the open" 3 "$(wc -l <&8)"
expect_equal "as of now" 2 "$(wc -l <locks/job)"
exec 8<&-

# Not met by who clears the directory, and not a lock.
expect_equal "not listed" 0 "$(find "$dir/B" -name .dlockfs | wc -l)"
rm -rf "$dir/B"/* "$dir/B"/.[!.]* 2>"$dir/err" || true
test -e status
readonly_() {
    refused soon "$@" 2>"$dir/err"
    grep -qi 'read-only\|not permitted\|exists\|denied\|is a directory' "$dir/err" || fail "$*: $(<"$dir/err")"
}
for command in "touch new" "mkdir new" "mkdir locks/new" "rm -f status" "rm -f locks/job" "rmdir locks/cron" \
    "rm -rf locks/cron" "ln -s x new" "ln status new" "mv status new" "mv locks/job new" "mkfifo new" "chmod 600 status" \
    "chown 1 status" "truncate -s 0 status" "touch status" "rmdir $dir/B/.dlockfs" "mv $dir/B/.dlockfs $dir/B/x" \
    "mkdir $dir/B/.dlockfs" "dd of=status count=0" "dd of=locks/new count=0" "dd of=locks/job oflag=append count=0"; do
    # shellcheck disable=SC2086
    readonly_ $command
done
expect_status 65 soon flock -n status true 2>"$dir/err"
call try "$dir/B/.dlockfs/new" excl-nb
finish try
expect_equal "exclusive open" "excl-nb EROFS" "$(<"$dir/try.out")"
cd "$dir"

# Whatever stands in a claim, the text is harmless.
for data in $'format=1\nhost=\e[2J\xff\npid=1\nposition=7 state=held\ncommand=a b\nkind=evil\n' $'format=1\nhost=x' \
    $'format=9\nhost=x\n' "$(head -c 100000 /dev/zero | tr '\0' 'x')"; do
    zookeeper set "/dlockfs/job/$(zookeeper claims /dlockfs/job)" "$data"
    cat "$dir/A/.dlockfs/locks/job" >"$dir/hostile"
    expect_equal "lines" 2 "$(wc -l <"$dir/hostile")"
    if LC_ALL=C grep -q '[^ -~]' "$dir/hostile"; then
        fail "shows $(od -c "$dir/hostile")"
    fi
    if grep -q 'host=\|command=\|evil' "$dir/hostile"; then
        fail "believes $(<"$dir/hostile")"
    fi
done
grep -q 'kind=flock' "$dir/queues.A"

# Many at a time, interrupted ones among them, and names that come and go.
for number in {1..30}; do
    start "cat$number" timeout "0.0$number" cat "$dir/A/.dlockfs/queues" "$dir/A/.dlockfs/locks/cron/deep/backup"
done
for number in {1..30}; do
    flock -n "$dir/B/brief$number" grep -q state=held "$dir/B/.dlockfs/locks/brief$number"
done
for number in {1..30}; do
    finish "cat$number" || true
done
release nested holder strange
wait_claims job 0
expect_equal "an empty queue" "lock=job claims=0 holders=0" "$(cat "$dir/A/.dlockfs/locks/job")"
# With files open, as the daemon stops.
exec 8<"$dir/A/.dlockfs/queues" 9<"$dir/A/.dlockfs"
stop_dlockfs A
exec 8<&- 9<&-
