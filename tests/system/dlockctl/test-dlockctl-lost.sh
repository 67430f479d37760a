#!/bin/bash
# dlockctl run on a host that is cut off: the command and all its children have ended before the other host can be granted
# the lock, or right after the lease for those that have to be killed; and the status says so.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires command -v setsid

no_process() {
    ! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]
}

# child NAME: what the command wrote down as the process id of its child.
child() {
    sed -n 's/^child //p' "$dir/$1.out"
}

start_zookeeper
start_proxy link
start_dlockfs A --session-timeout 8s --store "$(proxied link)"
start_dlockfs B --session-timeout 2m

run() {
    local name=$1
    shift
    start "$name" "$dlockctl" run "$@"
    expect "$name" ready
}

# Both the command and its child end by SIGTERM.
run term "$dir/A/term" sh -c 'sleep 1000 & echo child $!; echo ready; wait'
# The command ends, its child needs SIGKILL.
run stubborn "$dir/A/stubborn" bash -c '(trap "" TERM; while :; do sleep 1; done) & echo child $!; echo ready; wait'
# The command cleans up for a while.
run clean "$dir/A/clean" bash -c 'trap "sleep 1; echo cleaned; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
run kill --on-lost=kill "$dir/A/kill" bash -c 'trap "echo got TERM" TERM; echo ready; while :; do sleep 0.1; done'
run ignore --on-lost=ignore "$dir/A/ignore" bash -c 'echo ready; until [ -e "$1" ]; do sleep 0.1; done; exit 3' - "$dir/go"
run stopped "$dir/A/stopped" bash -c 'echo ready; kill -STOP $$; echo went on'
# On the other host, nothing of all that is noticed.
run other "$dir/B/other" bash -c 'echo ready; until [ -e "$1" ]; do sleep 0.1; done; exit 4' - "$dir/go"
call rival "$dir/B/term" open ex token hold
wait_claims term 2
# The descriptor of a shell script.
exec 9>"$dir/A/script"
flock 9
"$dlockctl" check 9
"$dlockctl" token 9 >"$dir/token"

cut_link link
for name in term stubborn clean kill stopped; do
    expect_status 75 finish "$name"
    grep -q 'dlockctl: .*: the lock is lost; the command' "$dir/$name.out" || fail "$name does not say why"
done
no_process "$(child term)" || fail "the child of the command lives on"
no_process "$(child stubborn)" || fail "the child that ignores SIGTERM lives on"
grep -qx cleaned "$dir/clean.out"
if grep -E 'got TERM' "$dir/kill.out"; then
    fail "--on-lost=kill sent SIGTERM"
fi
if grep 'went on' "$dir/stopped.out"; then
    fail "a stopped command went on without the lock"
fi
expect_status 75 "$dlockctl" check 9 2>"$dir/err"
expect_status 75 "$dlockctl" token 9 2>>"$dir/err"
grep -q 'descriptor 9: the lock is lost' "$dir/err"
exec 9>&-
alive ignore
wait_until "$deadline" grep -q 'ignore: the lock is lost; the command goes on' "$dir/ignore.out"
go go
expect_status 3 finish ignore
expect_status 4 finish other
expect rival "ex ok"
release rival
join_link link

# With on_lost, the daemon signals dlockctl as well: the status is the same.
start_dlockfs C --session-timeout 4s --store "$(proxied link)" -o on_lost=SIGTERM
run signalled "$dir/C/signalled" sh -c 'echo ready; exec sleep 1000'
cut_link link
expect_status 75 finish signalled
join_link link
