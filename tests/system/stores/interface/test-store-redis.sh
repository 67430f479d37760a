#!/bin/bash
# The store that takes keys in Redis, without a daemon: order, watches, names, proofs, the lease, and its end, as for every store
# (store_fixture.h); and what is its own: hosts and other clients that contend, answers that are lost, and a server that dies, stands
# still, has forgotten all, or refuses what it is asked. See redis_lock_test.c, redis_session_test.c and redis_refusals_test.c.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

names="store_queue store_watch store_look store_session store_proof redis_lock redis_refusals redis_session"
programs=$build/tests/system/stores/interface
requires test -x "$programs/redis_asker" # a build with Redis
mkfifo "$dir/ask" "$dir/answer"
exec 3<>"$dir/ask" 4<>"$dir/answer"

start_redis
start suite bash -c 'failed=0
for name in $2; do
    "$0" "$name" "$1" || failed=1
done
echo "end $failed" >&3' "$programs/store_tests" "redis://$(redis_address)" "$names"
while read -r -t 250 -u 3 command argument; do
    [ "$command" != end ] || break
    "$command" ${argument:+"$argument"}
    echo "done" >&4
done
finish suite || true
cat "$dir"/suite.* 2>/dev/null | tail -n 90
[ "$command $argument" = "end 0" ] || fail "tests of: $names"
