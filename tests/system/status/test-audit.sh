#!/bin/bash
# The audit: a line for each lock that is granted, refused, released or lost, with who held it and for how long, also by another
# daemon; and no lock waits for a log that hangs.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

start_zookeeper
start_kept A -o audit --session-timeout 2m
start_dlockfs B

# audited HOST PATTERN: the last line of the audit that has all of it.
audited() {
    sed -n 's/^dlockfs: audit: //p' "$dir/$1.log" | grep -E "$2" | tail -n 1
}

has_audited() {
    [ -n "$(audited "$1" "$2")" ]
}

# tells HOST PATTERN: a line of the audit comes.
tells() {
    wait_until "$deadline" has_audited "$1" "$2"
}

# held LINE: its seconds, whole ones.
held() {
    [[ $1 =~ \ held=([0-9]+)\.[0-9]{6} ]] && echo "${BASH_REMATCH[1]}"
}

who="host=$(hostname) pid=[0-9]+ uid=0 command"
hold holder "$dir/A/a job"
expect holder held
tells A "^granted kind=flock mode=exclusive $who=flock waited=0\.[0-9]{6} lock=a%20job\$"
expect_status 1 flock -n "$dir/A/a job" true
tells A "^refused kind=flock mode=exclusive $who=flock waited=0\.[0-9]{6} error=EWOULDBLOCK lock=a%20job\$"
expect_status 1 flock -s -w 0.2 "$dir/A/a job" true
tells A "^refused kind=flock mode=shared $who=flock waited=[0-9.]+ error=EINTR lock=a%20job\$"
begin=$(now_ms)

call open "$dir/A/open" excl excl-nb token hold
expect open "excl-nb EEXIST"
tells A "^granted kind=open mode=exclusive $who=python3 waited=[0-9.]+ lock=open\$"
tells A "^refused kind=open mode=exclusive $who=python3 waited=[0-9.]+ error=EEXIST lock=open\$"
tells A "^token $who=python3 token=[0-9]+ lock=open\$"

call range "$dir/A/range" open w:0-9 r:20- u:5-6 ex await="$dir/go" close
expect range "ex ok"
tells A "^granted kind=record mode=exclusive range=0-9 $who=python3 waited=[0-9.]+ lock=range\$"
tells A "^granted kind=record mode=shared range=20- $who=python3 waited=[0-9.]+ lock=range\$"
tells A "^released kind=record range=5-6 $who=python3 held=[0-9.]+ lock=range\$"

# What is taken anew changes nothing, and has no line; another mode ends the former one.
call modes "$dir/A/modes" open ex ex sh un
finish modes
tells A "^released kind=flock mode=shared .* lock=modes\$"
expect_equal "lines of four calls" 4 "$(grep -c 'audit: .* lock=modes$' "$dir/A.log")"

# A daemon that was killed has told the next one who holds, and since when.
crash A
restart_kept A
send_signal A USR2
wait_until "$deadline" gone_on_more A 2
go go
tells A "^released kind=record $who=python3 held=[0-9.]+ lock=range\$"
tells A "^released kind=flock mode=exclusive $who=python3 held=[0-9.]+ lock=range\$"
release open
tells A "^released kind=open mode=exclusive $who=python3 held=[0-9.]+ token=[0-9]+ lock=open\$"
least=$((($(now_ms) - begin) / 1000))
release holder
tells A "^released kind=flock .* lock=a%20job\$"
seconds=$(held "$(audited A '^released kind=flock .* lock=a%20job$')")
if [ "$seconds" -lt "$least" ] || [ "$seconds" -gt $((($(now_ms) - begin) / 1000 + deadline)) ]; then
    fail "held for $seconds s instead of $least s or a little more"
fi
expect_equal "grants and their ends" "$(grep -c 'audit: granted kind=[fo]' "$dir/A.log")" \
    "$(grep -c 'audit: \(released\|lost\) kind=[fo]' "$dir/A.log")"

# A loss: the audit, and the message of the loss, have who it was.
hold loser "$dir/A/taken"
expect loser held
"$dlockctl" --mount "$dir/B" break taken --yes >"$dir/out"
tells A "^lost kind=flock mode=exclusive $who=flock held=[0-9.]+ why=broken lock=taken\$"
release loser
hold loser "$dir/B/deleted"
expect loser held
zookeeper delete-claims /dlockfs/deleted
wait_until "$deadline" grep -qE 'deleted: claim .* was taken away, its holder has lost the lock: process [0-9]+ \(flock\)' "$dir/B.log"
release loser
refused grep audit: "$dir/B.log"

# A log that nobody reads holds nobody up; what does not fit in is counted.
mkfifo "$dir/pipe"
exec {pipe}<>"$dir/pipe"
mkdir "$dir/C"
start C sh -c 'exec "$0" --foreground --store local: -o audit "$1" 2>"$2"' "$dlockfs" "$dir/C" "$dir/pipe"
wait_until "$deadline" is_mounted "$dir/C"
timeout "$deadline" "$python" -c '
import fcntl, sys
with open(sys.argv[1], "w") as file:
    for _ in range(10000):
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)' "$dir/C/job"
soon flock -n "$dir/C/job" true
cat <&$pipe >"$dir/read" &
cleanup_fn kill $!
wait_until "$deadline" grep -qE 'warning: [0-9]+ lines of the audit were left out: the log does not keep up' "$dir/read"
flock -n "$dir/C/last" true
wait_until "$deadline" grep -q 'audit: released .* lock=last$' "$dir/read"
send_signal C TERM
finish C
