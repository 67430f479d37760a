#!/bin/bash
# Who takes the file itself for the lock, made by an exclusive open and closed at once, is found: a line in the log, one in the
# status, and a warning of dlockctl doctor name the process, the file and the setting. Who uses an exclusive open as a lock is not.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_dlockfs A

briefs() {
    sed -n 's/^brief_open=//p' "$dir/A/.dlockfs/status"
}

# An exclusive open that is a lock: it is held, or used for something else than a write, or the file is unlinked before it is closed.
started=$SECONDS
timeout "$deadline" "$python" "$tests/lib/calls.py" "$dir/A/held" excl ex close excl sh close excl fsync close excl read close \
    excl unlink close excl write=1 write=2 close excl write=1 seek=0 read close excl write=1 fsync close excl write=1 token close \
    excl write=1 ex close excl write=1 w:0-9 close excl write=1 unlink close open write=1 close >"$dir/steps.out"
expect_equal "exclusive opens that are granted and closed" "12 13" \
    "$(grep -c '^excl ok' "$dir/steps.out") $(grep -c '^close ok' "$dir/steps.out")"
call holder "$dir/A/held" excl write=1 await="$dir/go" close
call idle "$dir/A/idle" excl await="$dir/go" close
expect holder "write 1"
expect idle "excl ok"
sleep 0.3 # longer than what counts as brief
go go
expect holder "close ok"
expect idle "close ok"
expect_equal "uses of an exclusive open" "" "$(briefs)"
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || true
refused grep style "$dir/doctor.out"

# The idioms. A process that is kept from the processor for too long is not found; so it is tried again.
idiom() { # FILE [COMMAND]: which writes
    rm -f "$dir/A/$1"
    bash -c "set -o noclobber; ${2:-echo \$\$} >\"\$1\"; echo \$\$" - "$dir/A/$1" >"$dir/pid"
    [[ $(briefs) == "$1 pid=$(<"$dir/pid") command=bash count="* ]]
}
wait_until "$deadline" idiom job.lock
finds "^dlockfs: warning: job.lock: process $(<"$dir/pid") (bash) has made the file by an exclusive open and closed it at once, .* set style = file$" \
    "$dir/A.log"
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || true
finds "^warning: style: job.lock: process $(<"$dir/pid") (bash) has made the file by an exclusive open .* ([0-9]* such opens); .* set style = file$" \
    "$dir/doctor.out"
# Once in ten seconds for each file.
wait_until "$deadline" idiom job.lock
wait_until "$deadline" idiom other.lock
[ "$(grep -c 'job.lock: process' "$dir/A.log")" -eq 1 ] || [ $((SECONDS - started)) -ge 10 ]
finds 'other.lock: process' "$dir/A.log"

# The same without a write; of a name that stays the log says it once.
wait_until "$deadline" idiom empty.lock :
finds "^dlockfs: warning: empty.lock: process $(<"$dir/pid") (bash) has made the file by an exclusive open and closed it at once, .* set style = file$" \
    "$dir/A.log"
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || true
finds "^warning: style: empty.lock: process $(<"$dir/pid") (bash) has made the file by an exclusive open " "$dir/doctor.out"
exec 8>"$dir/A/short" # the name stays
brief_count() {
    briefs | sed -n 's/^short .* count=//p'
}
is_brief() { # MORE: another one since there were so many
    timeout "$deadline" "$python" "$tests/lib/calls.py" "$dir/A/short" excl close excl close excl close >/dev/null
    [[ $(brief_count) -gt $1 ]]
}
wait_until "$deadline" is_brief 0
before=$(brief_count)
told=$SECONDS
quiet_is_over() { # for so long the log says nothing twice
    [ $((SECONDS - told)) -gt 10 ]
}
wait_until "$deadline" quiet_is_over
wait_until "$deadline" is_brief "$before"
expect_equal "lines of a name that stays" 1 "$(grep -c 'short: process' "$dir/A.log")"
exec 8>&-
