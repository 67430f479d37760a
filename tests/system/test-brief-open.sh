#!/bin/bash
# Who takes the file itself for the lock, made by an exclusive open and closed at once, is found: a line in the log, one in the
# status, and a warning of dlockctl doctor name the process, the file and the setting. Who uses an exclusive open as a lock is not.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_dlockfs A

briefs() {
    sed -n 's/^brief_open=//p' "$dir/A/.dlockfs/status"
}

# An exclusive open that is a lock: it is held, or used for something else than a write, or the file is unlinked before it is closed.
started=$SECONDS
steps() { # STEP...
    timeout "$deadline" "$python" "$tests/system/calls.py" "$dir/A/held" "$@" >"$dir/steps.out"
    finds -x 'close ok' "$dir/steps.out"
}
steps excl ex close
steps excl sh close
steps excl fsync close
steps excl read close
steps excl unlink close
steps excl write=1 write=2 close
steps excl write=1 seek=0 read close
steps excl write=1 fsync close
steps excl write=1 token close
steps excl write=1 ex close
steps excl write=1 w:0-9 close
steps excl write=1 unlink close
steps open write=1 close
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
is_brief() {
    timeout "$deadline" "$python" "$tests/system/calls.py" "$dir/A/short" excl close excl close excl close >/dev/null
    [[ $(briefs) == "short pid="*" count="* ]]
}
wait_until "$deadline" is_brief
sleep 11 # for so long the log says nothing twice
wait_until "$deadline" is_brief
expect_equal "lines of a name that stays" 1 "$(grep -c 'short: process' "$dir/A.log")"
