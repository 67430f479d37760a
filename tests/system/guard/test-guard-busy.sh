#!/bin/bash
# The guard does not take a daemon that is busy for one that hangs: many locks are lost with the session of one store, and to tell
# of them takes several times as long as a daemon may be late. The guard sends the signals of on_lost meanwhile; each process gets
# one, however many locks it held; and the lock in another store stays, as does the mount. So it is with 600 locks in ZooKeeper of which
# each takes a millisecond, and with 5,000 in etcd at the daemon's own speed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_zookeeper other
other=$store

# begin TIMEOUT [LIBRARY]: host A has a store with that session timeout, and another one, which host B has as well.
begin() {
    cat >"$dir/dlockfs.ini" <<END
[mount]
directories = other
[store]
session_timeout = $1
[store "other"]
url = $other
session_timeout = 40s
[locks]
on_lost = SIGUSR1
END
    LD_PRELOAD=${2:-} start_dlockfs A --config "$dir/dlockfs.ini"
    start_dlockfs B --config "$dir/dlockfs.ini"
    keep kept "$dir/A/other/job" flock
    wait_until "$deadline" granted kept
    keep rival "$dir/B/other/job" flock
}

# lose_many SERVER NUMBER: a process loses so many locks, as the server stands still.
lose_many() {
    start many "$python" "$tests/system/guard/busy.py" "$dir/A" "$2"
    expect many held
    pause "$1"
    wait_until "$deadline" grep -q '^told' "$dir/many.out"
    alive A || fail "the guard has killed the daemon"
    expect_equal "what the holder sees" "told EIO EIO" "$(grep '^told' "$dir/many.out")"
    wait_until "$deadline" grep -q '^caught' "$dir/many.out"
    not_fenced kept
    not_granted rival
}

# expect_once SERVER NUMBER: all goes on, and each was told once.
expect_once() {
    resume "$1"
    wait_until "$deadline" flock -n "$dir/A/again" true
    alive A || fail "the daemon has ended"
    expect_equal "signals" 1 "$(grep -c '^caught' "$dir/many.out")"
    expect_equal "lines of signals" 1 "$(grep -c "SIGUSR1 to process $(pid many)," "$dir/A.log")"
    expect_equal "lines of losses" "$2" "$(grep -c ': many[0-9]*: lock lost with the session by process' "$dir/A.log")"
    release many kept
    wait_until "$deadline" granted rival
    release rival
    stop_dlockfs A
    stop_dlockfs B
    rm "$dir/A.log"
}

start_zookeeper
begin 12s "$build/tests/system/slow_polls.so"
lose_many zk 600 # an 80th of the timeout is 150 ms
wait_until "$deadline" grep -q ": the guard has sent SIGUSR1 to process $(pid many), which has lost the lock" "$dir/A.log"
expect_once zk 600

requires type -P etcd
start_etcd
begin 8s
lose_many etcd 5000
expect_once etcd 5000
