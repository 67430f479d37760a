#!/bin/bash
# More than ZooKeeper takes in one request (jute.maxbuffer, 1 MB): a queue whose list is longer is a queue like any
# other, and data of a claim to which nothing can be added any more keeps nobody from taking it away. Neither costs the
# connection, on which all locks of the host depend.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
hold other "$dir/A/other"
expect other held

long=$(printf 'x%.0s' {1..1000})
start crowd "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address)" crowd /dlockfs/job "$long-lock-" 1200
expect crowd crowded
expect_status 1 flock -n "$dir/A/job" true
hold waiter "$dir/A/job"
wait_claims job 1201
expect_equal "lines of the queue" 1202 "$(wc -l <"$dir/A/.dlockfs/locks/job")"
if said waiter held; then
    fail "held behind others"
fi
# The waiter's claim goes as well; that queues again, so the znode may not be empty in the end.
zookeeper delete /dlockfs/job 2>"$dir/delete.err" || true
expect waiter held
release waiter

claim=/dlockfs/big/_c_00000000-0000-8000-8000-000100000001-__WRIT__0000000000
longest=$((0xfffff - ${#claim} - 20))
start owner "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address)" own "$claim"
expect owner owned
zookeeper fill "$claim" "$longest"
expect_status 1 flock -n "$dir/A/big" true
"$dlockctl" --mount "$dir/A" revoke big
expect_equal "data of the claim" __REVOKE__ "$(zookeeper data "$claim")"
zookeeper fill "$claim" "$longest"
"$dlockctl" --mount "$dir/A" break big --yes
comes_free "$dir/A/big"
release crowd owner

if grep "lost" "$dir/A.log"; then
    fail "the connection broke"
fi
alive other
