#!/bin/bash
# Somebody deletes the key of a lock that is held, or writes another value into it: the holder is told with the next renewal, and fsync
# tells at once; other locks of the host stay. A key that is not ours, by its value or its type, is never deleted. A host that did not
# run for longer than its key lived is fenced when it wakes, and its token is smaller than that of who got the lock meanwhile.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

start_redis
start_dlockfs A --session-timeout 6s
start_dlockfs B --session-timeout 6s

keep other "$dir/A/other" write
wait_until "$deadline" granted other

# Deleted: a second host is in before the first one hears of it.
keep holder "$dir/A/deleted" write
wait_until "$deadline" granted holder
hold waits "$dir/A/deleted"
wait_until "$deadline" asleep waits
redis DEL dlockfs/deleted >/dev/null
wait_until "$deadline" fenced holder
grep -q '^fenced EIO ' "$dir/holder.out" || fail "not EIO: $(grep fenced "$dir/holder.out")"
# Who waited on that host goes on.
expect waits held
never_revived holder
release holder waits

# By fsync.
call prover "$dir/A/proved" open ex fsync await="$dir/deleted" fsync fsync hold
expect prover "fsync ok"
redis DEL dlockfs/proved >/dev/null
go deleted
expect prover "fsync EIO"
release prover

# Another value, which the end of the lock leaves alone.
keep holder "$dir/A/changed" write
wait_until "$deadline" granted holder
redis SET dlockfs/changed theirs >/dev/null
wait_until "$deadline" fenced holder
release holder
refused flock -n "$dir/A/changed" true
refused flock -n "$dir/B/changed" true
expect_equal "the value that is not ours" theirs "$(redis GET dlockfs/changed)"
redis DEL dlockfs/changed >/dev/null
comes_free "$dir/B/changed"

# Another type.
redis HSET dlockfs/typed somebody:1 1 >/dev/null
refused flock -n "$dir/A/typed" true
hold typed "$dir/B/typed"
wait_until "$deadline" asleep typed
# Only who has it can give it back.
expect_status 1 "$dlockctl" --mount "$dir/B" break typed --yes 2>"$dir/err"
grep -q 'is a key of its service' "$dir/err" || fail "dlockctl break: $(<"$dir/err")"
expect_equal "the count that is not ours" 1 "$(redis HGET dlockfs/typed somebody:1)"
redis DEL dlockfs/typed >/dev/null
expect typed held
release typed
not_fenced other
release other

# A host that did not run.
call sleeper "$dir/A/slept" open ex token await="$dir/awake" fsync token hold
expect sleeper "ex ok"
wait_until "$deadline" grep -q '^token ' "$dir/sleeper.out"
suspend A
call heir "$dir/B/slept" open ex token hold
wait_until "$deadline" grep -q '^token ' "$dir/heir.out"
awake A
go awake
expect sleeper "fsync EIO"
expect sleeper "token EIO"
early=$(sed -n 's/^token //p' "$dir/sleeper.out" | head -n 1)
late=$(sed -n 's/^token //p' "$dir/heir.out")
[ "$late" -gt "$early" ] || violation "the token $late follows $early"
release sleeper heir
