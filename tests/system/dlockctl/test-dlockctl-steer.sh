#!/bin/bash
# dlockctl revoke and break, from the other host: a command of dlockctl run is told to end, other holders are asked, and a lock
# that is broken goes to the next in the queue.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

on_b() {
    "$dlockctl" --mount "$dir/B" "$@"
}

start polite "$dlockctl" run "$dir/A/job" bash -c 'trap "echo asked; exit 5" TERM; echo ready; while :; do sleep 0.1; done'
expect polite ready
on_b revoke job >"$dir/revoke.out"
grep -qE "^asked $(hostname):[0-9]+ dlockctl$" "$dir/revoke.out"
expect polite asked
expect_status 5 finish polite
comes_free "$dir/B/job"

# One that is stopped goes on, to end.
start stopped "$dlockctl" run "$dir/A/job" bash -c 'trap "echo asked; exit 5" TERM; echo "ready $$"; while :; do sleep 0.1; done'
wait_until "$deadline" grep -q '^ready ' "$dir/stopped.out"
command=$(sed -n 's/^ready //p' "$dir/stopped.out")
kill -STOP "-$command"
wait_until "$deadline" grep -q '^State:.T' "/proc/$command/status"
on_b revoke job >"$dir/revoke.out"
expect stopped asked
expect_status 5 finish stopped
comes_free "$dir/B/job"

start deaf "$dlockctl" run --on-revoke=ignore "$dir/A/job" sh -c 'echo ready; exec sleep infinity'
expect deaf ready
call waiter "$dir/B/job" open ex hold
wait_claims job 2
on_b revoke job
wait_until "$deadline" grep -q 'job: somebody asks for the lock; the command goes on' "$dir/deaf.out"
alive deaf
expect_status 64 on_b break job 2>"$dir/err"
grep -q 'would take the claim at position 1 away (held, exclusive, for .*, of .*:.* dlockctl); say --yes' "$dir/err"
expect_status 77 setpriv --reuid=65534 --clear-groups "$dlockctl" --mount "$dir/B" revoke job 2>"$dir/err"
grep -q 'another user may' "$dir/err"
alive deaf
on_b break job --yes >"$dir/break.out"
grep -q '^took the claim at position 1 away (held' "$dir/break.out"
expect_status 75 finish deaf
expect waiter "ex ok"

# One that waits.
hold third "$dir/A/job"
wait_claims job 2
on_b break --position 2 --yes job | finds 'position 2 away (waiting'
release third waiter
wait_claims job 0
