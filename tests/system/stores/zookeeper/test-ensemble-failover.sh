#!/bin/bash
# The leader of an ensemble of three dies while locks are held and waited for: nobody loses a lock or a place, and with
# the quorum gone nobody gets one.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_ensemble 3
start_dlockfs A --session-timeout 3m
start_dlockfs B --session-timeout 3m

call holder "$dir/A/job" open ex await="$dir/close" fstat ex-nb close hold
expect holder "ex ok"
call waiter1 "$dir/B/job" open ex hold
zookeeper_name=zk1 wait_claims job 2
call waiter2 "$dir/A/job" excl hold
zookeeper_name=zk1 wait_claims job 3

leader=$(zookeeper_leader 3)
stop_zookeeper "$leader"
left=(zk1 zk2 zk3)
left=("${left[@]/$leader/}")
read -r one other <<<"${left[*]}"
new_leader() {
    zookeeper_find_leader 3 >/dev/null
}
wait_until "$deadline" new_leader
zookeeper_name=$one wait_claims job 3
expect_status 1 timeout "$deadline" flock -n "$dir/B/job" true

# No quorum: nobody gets anything.
stop_zookeeper "$other"
call late "$dir/B/free" open ex hold
go close
expect holder "close ok"
expect_equal "what the holder saw" "fstat ok,ex-nb ok,close ok" "$(tail -n 3 "$dir/holder.out" | paste -sd,)"
for name in waiter1:ex late:ex; do
    if said "${name%:*}" "${name#*:} ok"; then
        fail "${name%:*} was granted a lock without a quorum"
    fi
done
start_zookeeper "$other"
expect waiter1 "ex ok" 60
release waiter1
expect waiter2 "excl ok"
expect late "ex ok"
