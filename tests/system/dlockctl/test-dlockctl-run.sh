#!/bin/bash
# dlockctl run: the same exit statuses as flock(1), who excludes whom, the environment of the command, and that only
# dlockctl holds the lock.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
a=$dir/A/job
b=$dir/B/job

on_a() {
    "$dlockctl" --mount "$dir/A" "$@"
}

on_b() {
    "$dlockctl" --mount "$dir/B" "$@"
}

# same STATUS ARGUMENT...: flock(1) and dlockctl run end with this status.
same() {
    local status=$1 word flock=() run=()
    shift
    for word; do
        flock+=("${word/NAME/$b}")
        run+=("${word/NAME/job}")
    done
    expect_status "$status" flock "${flock[@]}"
    expect_status "$status" on_b run "${run[@]}"
    expect_status "$status" "$dlockctl" run "${flock[@]}"
}

expect_equal output hello "$(on_a run job echo hello)"
expect_equal "behind --" hello "$(on_a run job -- echo hello)"
expect_equal "options of the command" "-x -- -v" "$(on_a run job echo -x -- -v)"
expect_equal "standard input" text "$(echo text | on_a run job cat)"
same 0 NAME true
same 5 NAME sh -c 'exit 5'
same 143 NAME sh -c 'kill -TERM $$'
same 137 NAME sh -c 'kill -KILL $$'
same 69 NAME /nonexistent 2>"$dir/err"
same 69 NAME "$dir" 2>"$dir/err"
expect_status 7 timeout --signal=KILL 20 "$python" -c '
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$dlockctl" --mount "$dir/A" run job sh -c 'exit 7'
same 64 -w x NAME true 2>"$dir/err"
expect_status 64 on_a run -w -1 job true 2>"$dir/err"
same 64 -E 300 NAME true 2>"$dir/err"
same 64 --nonsense NAME true 2>"$dir/err"
same 64 2>"$dir/err"
export SHELL=/bin/bash
same 6 NAME -c 'test "$0 $#" = "$SHELL 0" && exit 6'
same 7 -n NAME --command 'exit 7'
expect_status 4 env -u SHELL "$dlockctl" run "$a" -c 'exit 4'
same 64 NAME -c 2>"$dir/err"
same 64 NAME -c 'true' true 2>"$dir/err"
grep -q "run: -c: has several arguments; expected one, as in: dlockctl run $b -c" "$dir/err" || fail "$(<"$dir/err")"

# Who excludes whom, on the own host and on the other, and with flock(1).
start writer "$dlockctl" --mount "$dir/A" run job sh -c 'echo held; exec sleep infinity'
expect writer held
same 1 -n NAME true
same 1 --nonblock --shared NAME true
same 9 -n -E 9 NAME true
same 0 -n --conflict-exit-code 0 NAME false
same 1 -w 0 NAME true
expect_status 1 on_a run -n job true
expect_equal "without -v" "" "$(on_b run -n job true 2>&1 || true)"
grep -q 'job: others hold it' <<<"$(on_b run -n -v job true 2>&1 || true)"
for options in -n "-w 0.2"; do
    script -qec "$dlockctl --mount $dir/B run $options job true" /dev/null >"$dir/terminal.out" </dev/null && fail "on a terminal, $options: it was locked"
    grep -q 'job: others hold it' "$dir/terminal.out" || fail "on a terminal, $options: $(<"$dir/terminal.out")"
done
begin=$(now_ms)
same 8 -w 0.5 -E 8 NAME true
[ $(($(now_ms) - begin)) -ge 1500 ] || fail "-w 0.5 ended too early"
wait_claims job 1
start waiter "$dlockctl" --mount "$dir/B" run -w 60 job echo got
wait_claims job 2
release writer
expect waiter got
finish waiter
wait_claims job 0

start reader "$dlockctl" --mount "$dir/A" run -s job sh -c 'echo held; exec sleep infinity'
expect reader held
same 0 -n -s NAME true
same 1 -n NAME true
release reader
comes_free "$b"

# The environment: the name, and a token that grows.
last=0
for host in A B A; do
    comes_free "$dir/$host/job"
    read -r name token < <("$dlockctl" run "$dir/$host/job" sh -c 'echo "$DLOCK_NAME $DLOCK_TOKEN"')
    expect_equal DLOCK_NAME job "$name"
    [ "$token" -gt "$last" ] || violation "token $token after $last"
    last=$token
done

# No descriptor of the mount in the command; so a child that it leaves behind does not keep the lock.
comes_free "$a"
on_a run job sh -c 'ls -l /proc/self/fd; sleep infinity >/dev/null 2>&1 & echo $! >"$1"' - "$dir/child" >"$dir/fds"
read -r child <"$dir/child"
cleanup_fn kill "$child"
if grep -F "$dir/A" "$dir/fds"; then
    fail "the command has a descriptor of the lock"
fi
kill -0 "$child"
flock -n "$a" true
kill "$child"

# Directories are of one host only: those of the name are made. A directory is no lock.
expect_equal "in a directory" deep "$(on_a run deep/er/job echo deep)"
on_b run deep/er/job true
expect_status 66 on_a run deep/er true 2>"$dir/err"
grep -q 'is a directory' "$dir/err"
exec 9>"$dir/A/deep/file"
expect_status 66 on_a run deep/file/er/job true 2>"$dir/err"
grep -qx 'dlockctl: deep/file/er/job: deep/file is a lock in use on this host, and nothing can be below it; expected another name' \
    "$dir/err" || fail "$(<"$dir/err")"
exec 9>&-

# Signals are passed on, INT, TERM, HUP and QUIT to the whole group, and the status is that of the command.
for signal in INT TERM HUP QUIT USR1 USR2; do
    start signalled env --default-signal=INT,QUIT "$dlockctl" run "$a" bash -c \
        'for s in INT TERM HUP QUIT USR1 USR2; do trap "echo got $s; exit 7" $s; done; echo ready; while :; do sleep 0.05; done'
    expect signalled ready
    kill "-$signal" "$(pid signalled)"
    expect signalled "got $signal"
    expect_status 7 finish signalled
done
start signalled "$dlockctl" run "$a" sh -c 'sleep 1000 & echo $!; echo ready; wait'
expect signalled ready
child=$(head -n 1 "$dir/signalled.out")
kill -TERM "$(pid signalled)"
expect_status 143 finish signalled
no_process() {
    ! kill -0 "$1"
}
wait_until "$deadline" no_process "$child"
comes_free "$a"

# When dlockctl is killed, nothing can look after the lock: the command is killed as well.
start killed "$dlockctl" run "$a" sh -c 'echo $$; exec sleep infinity'
wait_until "$deadline" test -s "$dir/killed.out"
child=$(<"$dir/killed.out")
kill -KILL "$(pid killed)"
wait_until "$deadline" no_process "$child"
comes_free "$a"
finish killed || true

# A signal while it waits ends it, and it leaves the queue.
hold holder "$a"
expect holder held
start waiter "$dlockctl" run "$b" echo got
wait_claims job 2
kill -TERM "$(pid waiter)"
expect_status 143 finish waiter
wait_claims job 1
release holder
comes_free "$a"

# A mount that is dead.
kill_dlockfs B
expect_status 72 on_b run job true 2>"$dir/err"
grep -q 'dead' "$dir/err"
