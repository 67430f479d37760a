#!/bin/bash
# One Redis server is killed and comes back, with what it kept: nobody loses a lock, who waits goes on, and tokens go on growing. It is
# away for longer than session_timeout: holders are fenced first, and then others get the lock.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

start_redis
start_dlockfs A --session-timeout 30s
start_dlockfs B --session-timeout 30s

# token_of HOST LOCK: of a new hold.
token_of() {
    rm -f "$dir/token.out"
    call token "$dir/$1/$2" open ex token
    finish token
    sed -n 's/^token //p' "$dir/token.out"
}

# Killed, and paused, for a moment.
before=$(token_of A token)
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep waiter "$dir/B/job" flock
wait_until "$deadline" asleep waiter
restart_redis
pause redis
read -r -t 1 -u "$nothing" || true # it is away for that long
resume redis
flock "$dir/A/other" true
flock "$dir/B/other" true
not_granted waiter
not_fenced holder
release holder
wait_until "$deadline" granted waiter
release waiter
after=$(token_of B token)
[ "$after" -gt "$before" ] || violation "the token $after follows $before"
stop_dlockfs A
stop_dlockfs B

# Away for longer than the keys live.
start_dlockfs C --session-timeout 3s
start_dlockfs D --session-timeout 3s
keep holder "$dir/C/job" write
wait_until "$deadline" granted holder
keep rival "$dir/D/job" write
wait_until "$deadline" asleep rival
cut=$(lease now)
pause redis
wait_until "$deadline" fenced holder
not_granted rival
resume redis
told_first "$cut" holder rival
never_revived holder
release holder rival
comes_free "$dir/C/job"
