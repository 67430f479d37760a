#!/bin/bash
# Somebody revokes the lease of a holder's host, as a former leader of etcd may: the next host in the queue is granted the lock only
# after the holder was told, though the holder's host looks away for a while. A release is told apart from that by the order in which
# the keys of the claim go.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

# deletions COUNT: so many keys were deleted in all.
deletions() {
    [ "$(grep -c -A 1 '^DELETE' "$dir/keys.out")" -ge "$1" ]
}

# last_deletions COUNT: the kinds of the last ones.
last_deletions() {
    grep -A 1 '^DELETE' "$dir/keys.out" | sed -n 's|^/dlockfs/job/write/[^/]*$|claim|p; s|^/dlockfs/job/write/[^/]*/data$|data|p' | tail -n "$1" | paste -sd ' '
}

# lease_of LOCK: that of the first claim, in hexadecimal.
lease_of() {
    etcd_ask etcd get --prefix "/dlockfs/$1/" --sort-by=create --order=ascend --limit=1 -w fields | sed -n 's/^"Lease" : //p' | xargs printf '%x'
}

# hold_and_wait: A has a holder, and B a rival that waits.
hold_and_wait() {
    keep holder "$dir/A/job" flock
    wait_until "$deadline" granted holder
    keep rival "$dir/B/job" flock
    wait_claims job 2
}

# revoke LEASE COUNT: until so many keys were deleted in all, and B has heard of it, at least after some more answers.
revoke() {
    cut=$(lease now)
    etcd_ask etcd lease revoke "$1" >/dev/null
    wait_until "$deadline" deletions "$2"
    for ((i = 0; i < 20; i++)); do
        flock "$dir/B/other" true
    done
}

start_etcd
for host in A B; do
    start_dlockfs "$host" --session-timeout 40s
done
start keys etcdctl watch --rev=1 --prefix /dlockfs/job/
hold_and_wait
wait_until "$deadline" grep -q '^PUT' "$dir/keys.out"

# A release: the data first.
release holder
wait_until "$deadline" granted rival
wait_until "$deadline" deletions 2
expect_equal "a release" "data claim" "$(last_deletions 2)"
release rival
wait_until "$deadline" deletions 4
wait_claims job 0

hold_and_wait
comes_free "$dir/B/other"
revoked=$(lease_of job)
suspend A
revoke "$revoked" 6
expect_equal "the end of a lease" "claim data" "$(last_deletions 2)"
if granted rival; then
    violation "the rival was granted the lock before the holder was told"
fi
awake A
told_first "$cut" holder rival
never_revived holder
release holder rival
wait_claims job 0

# The rest of that time passes if another process goes on in place of the one that has heard it.
hold_and_wait
comes_free "$dir/B/other"
revoke "$(lease_of job)" 10
send_signal B USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/B.log"
wait_until "$deadline" granted rival
waited=$(($(time_of rival granted) - cut))
[ "$waited" -ge 6000 ] || violation "the rival was granted the lock $waited ms after the end of a lease, by another process" # 0.15 of the timeout
release holder rival
wait_claims job 0

# A clean stop announces it: nobody waits, also if another process of the host has placed the claim.
hold_and_wait
send_signal A USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
stop_dlockfs A
stopped=$(lease now)
wait_until "$deadline" granted rival
waited=$(($(lease now) - stopped))
[ "$waited" -lt 6000 ] || fail "the rival was granted the lock $waited ms after a clean stop" # 0.15 of the timeout
