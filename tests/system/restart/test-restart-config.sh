#!/bin/bash
# A configuration with an error releases no lock: in a restart, and after a kill, the one that was read last without an error stands
# in for it, and the log says so. With SIGUSR2 the program that runs goes on. `dlockfs --check` finds the error before.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

# limit NUMBER: locks of so many ranges only, which shows what configuration is in use.
limit() {
    printf '%s\n' '# a comment' '[locks]' "process_ranges = $1" >"$dir/A.ini"
}
limit_is() {
    "$python" "$tests/lib/calls.py" "$dir/A/limited" open w-nb:0-0 w-nb:2-2 w-nb:4-4 >"$dir/limited.out"
    expect_equal "ranges that a process may have" "$1" "$(grep -c ok "$dir/limited.out" | awk '{ print $1 - 1 }')"
}
logged() {
    grep -qxF -- "dlockfs: error: $1" "$dir/A.log"
}
# stood_in COMMAND...: which has another process go on, though the file has an error.
stood_in() {
    : >"$dir/A.log"
    "$@"
    wait_until "$deadline" logged "$dir/A.ini:2: unknown section \"lock\", expected [mount], [store], [store \"prefix\"], [locks] or [locks \"pattern\"]; the configuration of the process before is in use"
    expect_status 1 flock -n "$dir/A/job" true
    limit_is 1
}

limit 2
start_kept A --config "$dir/A.ini"
hold holder "$dir/A/job"
expect holder held
# What was read at a reload counts.
limit 1
send_signal A HUP
wait_until "$deadline" grep -q 'read anew' "$dir/A.log"
limit_is 1
printf '%s\n' '[mount]' '[lock]' >"$dir/A.ini"
send_signal A HUP
wait_until "$deadline" grep -q 'stays as it was' "$dir/A.log"
for command in restart_kept leave crash restart_kept; do
    stood_in "$command" A
done
# The program that runs goes on; and then one that is started finds the same.
: >"$dir/A.log"
send_signal A USR2
wait_until "$deadline" grep -q ' does not take over: .*A.ini:2: unknown section .*; this program goes on$' "$dir/A.log"
limit_is 1
stood_in crash A
# There is no file any more.
rm "$dir/A.ini"
: >"$dir/A.log"
restart_kept A
logged "$dir/A.ini: No such file or directory; the configuration of the process before is in use" || fail "$(<"$dir/A.log")"
limit_is 1
# What is right is read.
limit 2
send_signal A HUP
wait_until "$deadline" grep -q 'read anew' "$dir/A.log"
limit_is 2
limit 3
restart_kept A
limit_is 3
expect_status 1 flock -n "$dir/A/job" true
release holder
stop_kept A

# The service needs a url. A daemon that goes on keeps what its configuration said while that is gone.
printf '%s\n' '[store]' 'url = local:' '[locks]' 'process_ranges = 1' >"$dir/A.ini"
: >"$dir/A.log"
start manager-A "$python" "$tests/lib/service_manager.py" "$dir" A "$dlockfs" --foreground --require-url --config "$dir/A.ini" "$dir/A"
wait_until "$deadline" said manager-A "keeps state"
wait_until "$deadline" mount_settled A
hold holder "$dir/A/job"
expect holder held
no_url="$dir/A.ini: no url in [store], expected url = zookeeper://..., etcd://... or redis://..., or url = local: for locks of this host alone, in [store]"
printf '%s\n' '[locks]' 'process_ranges = 3' >"$dir/A.ini"
send_signal A HUP
wait_until "$deadline" logged "$no_url; the configuration stays as it was"
limit_is 1
restart_kept A
logged "$no_url; the configuration of the process before is in use" || fail "$(<"$dir/A.log")"
limit_is 1
expect_status 1 flock -n "$dir/A/job" true
release holder
stop_kept A
# At a start, too. By hand no store has to be named.
for options in "" "--check"; do
    # shellcheck disable=SC2086
    refused timeout "$deadline" "$dlockfs" $options --require-url --config "$dir/A.ini" "$dir/A" 2>"$dir/err"
    expect_equal "what it says" "dlockfs: error: $no_url" "$(<"$dir/err")"
done
for arguments in "--config $dir/A.ini" "--require-url --config $dir/A.ini --store local:" "--require-url --config $dir/A.ini -o url=local:"; do
    # shellcheck disable=SC2086
    "$dlockfs" --check $arguments "$dir/A"
done
if [ ! -e /etc/dlockfs.ini ]; then
    refused timeout "$deadline" "$dlockfs" --require-url "$dir/A" 2>"$dir/err"
    expect_equal "lines without any file" 1 "$(wc -l <"$dir/err")"
    grep -q '^dlockfs: error: .*/dlockfs.ini: not there, expected url = .*url = local: ' "$dir/err" || fail "$(<"$dir/err")"
    "$dlockfs" --check "$dir/A"
fi

# Nothing stands in at a start. What is wrong is found before, with or without a mount.
start_dlockfs B
for host in A B; do
    "$dlockfs" --check --config "$dir/A.ini" -o noexec "$dir/$host" >"$dir/out" 2>&1
    expect_equal "what --check says" "" "$(<"$dir/out")"
done
printf '%s\n' '[lock]' >"$dir/A.ini"
for options in "" "--check" "--check --foreground"; do
    # shellcheck disable=SC2086
    refused "$dlockfs" $options --config "$dir/A.ini" "$dir/A" 2>"$dir/err"
    grep -q "^dlockfs: error: $dir/A.ini:1: unknown section" "$dir/err" || fail "$options: $(<"$dir/err")"
done
refused "$dlockfs" --check -o no_such "$dir/A" 2>"$dir/err"
not_mounted "$dir/A"
pause B # nothing asks the mount
soon "$dlockfs" --check "$dir/B"
resume B
