#!/bin/bash
# Three members of etcd, and a host whose lease ends: the member that it is connected to, a follower or the leader, is cut off from the
# others or paused, or the host is paused. Its holders are fenced before the waiters on the other host are granted; what each
# case took is printed. When the faults are over, all works again.
#
# From the environment: RUNS, how often each case comes (1).
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

begin() { # FAULT
    case $1 in
        *-cut) cut_link "$near" ;;
        *-paused) pause "$near" ;;
        host-suspended) suspend A ;;
    esac
}

end() { # FAULT
    case $1 in
        *-cut) join_link "$near" ;;
        *-paused) resume "$near" ;;
        host-suspended) awake A ;;
    esac
    wait_until "$deadline" etcd_serves "$near"
}

start_linked_etcds 3
near=etcd1
start_dlockfs A --session-timeout 4s --store "etcd://$(etcd_address etcd1)/dlockfs"
start_dlockfs B --session-timeout 60s --store "etcd://$(etcd_address etcd2),$(etcd_address etcd3)/dlockfs"
for ((run = 0; run < ${RUNS:-1}; run++)); do
    for fault in follower-cut leader-cut follower-paused leader-paused host-suspended; do
        case $fault in
            leader-*) etcd_move_leader etcd1 ;;
            *) etcd_move_leader etcd2 ;;
        esac
        comes_free "$dir/A/flock"
        comes_free "$dir/B/flock"
        keep_contended
        echo "$fault:"
        cut=$(lease now)
        begin "$fault"
        if [ "$fault" = host-suspended ]; then # nobody there can be told meanwhile
            for kind in flock excl; do
                wait_until "$deadline" granted "rival-$kind"
            done
            end "$fault"
        fi
        for kind in flock excl; do
            fenced_first "$cut" "holder-$kind" "rival-$kind"
        done
        [ "$fault" = host-suspended ] || end "$fault"
        never_revived holder-flock holder-excl
        not_fenced rival-flock
        not_fenced rival-excl
        release holder-flock holder-excl rival-flock rival-excl
        wait_claims flock 0
        wait_claims excl 0
    done
done
