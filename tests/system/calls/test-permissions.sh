#!/bin/bash
# Users without privileges use the mount as they use any lock directory: own files, modes and owners count, the root
# directory is for all and not sticky.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v setpriv

as() { # USER-ID COMMAND...
    local user=$1
    shift
    setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@"
}

# start_as USER-ID NAME COMMAND...
start_as() {
    local user=$1 name=$2
    shift 2
    start "$name" setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@"
}

requires as 12345 true
as 12345 test -x "$dir" || fail "$dir cannot be entered by other users"
start_zookeeper
start_dlockfs A
start_dlockfs B

expect_equal "root directory" "drwxrwxrwx" "$(stat -c %A "$dir/A")"

# Two users share a lock that the first one created with the usual mode; flock(1) opens it for reading.
start_as 12345 first sh -c 'umask 022; exec 9>"$1"; flock 9; echo held; exec sleep infinity' - "$dir/A/job"
expect first held
expect_equal "owner and mode" "12345 12345 644" "$(stat -c '%u %g %a' "$dir/A/job")"
expect_status 1 as 23456 flock -n "$dir/A/job" true
expect_status 1 as 23456 flock -n "$dir/B/job" true
expect_status 1 flock -n "$dir/A/job" true
# Others may not write what is not theirs, root may.
refused as 23456 sh -c 'echo x >"$1"' - "$dir/A/job" 2>"$dir/err"
grep -qi 'permission denied' "$dir/err"
refused as 23456 chmod 666 "$dir/A/job" 2>"$dir/err"
refused as 23456 chown 23456 "$dir/A/job" 2>"$dir/err"
as 12345 chmod 600 "$dir/A/job"
refused as 23456 sh -c ': <"$1"' - "$dir/A/job" 2>"$dir/err"
as 12345 touch -d 2020-01-01 "$dir/A/job"
expect_equal "time" 2020-01-01 "$(stat -c %y "$dir/A/job" | cut -d' ' -f1)"
chown 23456:23456 "$dir/A/job"
expect_equal "owner" 23456 "$(stat -c %u "$dir/A/job")"
as 23456 sh -c 'echo x >"$1"' - "$dir/A/job"
release first

# A file of another user can be created in the root directory by all, also where fs.protected_regular is set.
start_as 12345 second sh -c 'umask 0; exec 9>"$1"; sleep infinity' - "$dir/A/shared"
wait_until "$deadline" test -e "$dir/A/shared"
as 23456 sh -c ': >>"$1"' - "$dir/A/shared"
sh -c ': >>"$1"' - "$dir/A/shared"
release second

# Nobody makes it otherwise; nor any other directory.
for sticky in "$dir/A" "$dir/A/sticky"; do
    "$python" -c 'import os, sys
os.umask(0)
os.path.exists(sys.argv[1]) or os.mkdir(sys.argv[1], 0o1777)' "$sticky"
    expect_equal "mode of $sticky" 777 "$(stat -c %a "$sticky")"
    expect_status 1 chmod 1777 "$sticky" 2>"$dir/err"
    grep -q 'Operation not permitted' "$dir/err"
    expect_equal "mode of $sticky" 777 "$(stat -c %a "$sticky")"
    chmod 1666 "$dir/A/shared" # of a file it means nothing
    chmod 755 "$sticky"
    chmod 777 "$sticky"
done

# Exclusive open by other users waits and holds as well.
start_as 12345 third "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/A/excl" excl hold
expect third "excl ok"
expect_status 1 as 23456 flock -n "$dir/B/excl" true
as 23456 "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/A/excl" excl-nb >"$dir/fourth.out"
expect_equal "of another user" "excl-nb EEXIST" "$(<"$dir/fourth.out")"
start_as 23456 fifth "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/B/excl" excl hold
wait_claims excl 2
release third
expect fifth "excl ok"
release fifth

# A directory of one's own keeps others out.
as 12345 mkdir -m 700 "$dir/A/private"
refused as 23456 flock -n "$dir/A/private/job" true 2>"$dir/err"
as 12345 flock -n "$dir/A/private/job" true
refused as 23456 rmdir "$dir/A/private" 2>"$dir/err" || true

# mode= and allow_other=.
store=local:
start_dlockfs C -o mode=0750
refused as 12345 flock -n "$dir/C/job" true 2>"$dir/err"
grep -qi 'permission denied' "$dir/err"
start_dlockfs D -o allow_other=no
refused as 12345 ls "$dir/D" 2>"$dir/err"
flock -n "$dir/D/job" true
