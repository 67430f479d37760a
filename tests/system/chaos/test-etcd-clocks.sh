#!/bin/bash
# Three members of etcd whose clocks are stepped. Of their wall clocks nobody notices anything, and a host that is cut off from them
# is fenced in time. A leader whose monotonic clock counts time that has not passed ends leases that live: the holder finds out with
# its next heartbeat, which may be after another one was granted the lock, but fsync tells at once. Such a clock of a follower ends
# none, also when it leads later.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=server-clocks.sh
. "$tests/system/chaos/server-clocks.sh"

clock_of() {
    "$python" -c '
import email.utils, sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as answer:
    print(int(email.utils.parsedate_to_datetime(answer.headers["Date"]).timestamp()))' "http://$(etcd_address "$1")/version"
}

# jump SECONDS: of all clocks that count, so also of whoever leads. The wall clocks go along, as they do on a machine: before 3.5.0 a
# lease ends only by both.
jump() {
    local name
    for name in "${etcd_members[@]}"; do
        step "$name" "$1" "$1"
    done
}

# fsync_tells SINCE: of the holders and rivals fsync and write.
fsync_tells() {
    local last
    fenced_first "$1" holder-fsync rival-fsync
    wait_until "$deadline" granted rival-write
    wait_until "$deadline" fenced holder-write
    last=$(awk '$1 == "fenced" { print $3 }' "$dir/holder-write.out")
    echo "holder-write, rival-write: to grant $(($(time_of rival-write granted) - $1)) ms, to the last write $((last - $1)) ms"
    let_go fsync write
}

start_etcds 3
for name in "${etcd_members[@]}"; do
    clock_is_stepped "$name"
done
etcd_move_leader etcd1
nobody_notices etcd1 "${etcd_members[@]}"
etcd_move_leader etcd1
fenced_in_time etcd1

# The leader looks for leases that have ended twice a second.
hold_against fsync write
etcd_move_leader etcd1
step etcd2 30 30
step etcd3 30 30
sleep 1.5
not_granted rival-fsync "a follower's clock has ended the holder's lease"
etcd_move_leader etcd2
sleep 1.5
not_granted rival-fsync "a new leader's clock has ended the holder's lease"

# An election just then gives the lease its full time anew.
since=$(lease now)
for ((ahead = 60; ahead < 300; ahead += 30)); do
    jump $ahead
    for ((look = 0; look < 50; look++)); do
        ! granted rival-fsync || break 2
        sleep 0.1
    done
done
echo "the leader's clocks jump:"
fsync_tells "$since"

comes_free "$dir/D/flock"
hold_against fsync write
since=$(lease now)
cut_link near
jump $((ahead + 3))
echo "cut off, and the leader's clocks jump by 3 s:"
fsync_tells "$since"
join_link near
comes_free "$dir/D/flock"
