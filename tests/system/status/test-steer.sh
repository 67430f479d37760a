#!/bin/bash
# Locks are asked for and taken away from outside, on the holder's host and on another one: the holder is told by poll and
# signal, and loses its lock; Curator's Revoker works on our holders, and ours on Curator's; only those may who should.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

steer() {
    timeout "$deadline" "$python" "$tests/lib/steer.py" "$@"
}

# logged HOST REGULAR-EXPRESSION
logged() {
    grep -qE "$2" "$dir/$1.log"
}

# proofs: how many heartbeats the host "slow" has had.
proofs() {
    sed -n 's/^dlockfs_store_operation_seconds_count{operation="prove"} //p' "$dir/slow/.dlockfs/metrics"
}

has_proven_more() {
    [ "$(proofs)" -gt "$1" ]
}

# The holder is told before another one is granted, also by a host that reads the order late: with its next heartbeat, which is an
# eighth of its session timeout away when the claim is taken just after one. The lock "beats" is there so that there are heartbeats.
told_late() {
    start_dlockfs slow --session-timeout 40s
    start_dlockfs B --session-timeout 10s
    call beats "$dir/slow/beats" open ex hold
    expect beats "ex ok"
    before=$(proofs)
    wait_until "$deadline" has_proven_more "$before"
    keep victim "$dir/slow/late" write
    wait_until "$deadline" granted victim
    keep heir "$dir/B/late" flock
    wait_claims late 2
    cut=$(lease now)
    expect_equal "breaking what is not watched yet" ok "$(steer break "$dir/B" late 1)"
    fenced_first "$cut" victim heir
    release victim heir beats
    wait_claims late 0
    stop_dlockfs slow
    stop_dlockfs B
}

# A host that does not react is overruled: when its session is over, or two of that long are.
stopped() {
    start_dlockfs A --session-timeout 10s
    start_dlockfs B --session-timeout 10s
    call holder "$dir/A/stopped" open ex hold
    expect holder "ex ok"
    call waiter "$dir/B/stopped" open ex hold
    wait_claims stopped 2
    suspend A
    expect_equal "breaking what a stopped daemon holds" ok "$(steer break "$dir/B" stopped 1)"
    expect waiter "ex ok"
    awake A
    release holder waiter
    wait_claims stopped 0
    stop_dlockfs A
    stop_dlockfs B
}

deaf() {
    start_dlockfs A --session-timeout 10s
    start_dlockfs B --session-timeout 10s
    start deaf "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address zk)" hold /dlockfs/deaf \
        _c_00000000-0000-4000-8000-000000000000-__WRIT__ $'format=1\nhost=deaf\npid=1\nuid=0\n'
    wait_claims deaf 1
    call waiter "$dir/A/deaf" open ex hold
    wait_claims deaf 2
    begin=$(now_ms)
    expect_equal "breaking what a deaf host holds" ok "$(steer break "$dir/B" deaf 1)"
    [ $(($(now_ms) - begin)) -ge 20000 ] || fail "overruled after $(($(now_ms) - begin)) ms"
    expect waiter "ex ok"
    release deaf waiter
    wait_claims deaf 0
    stop_dlockfs A
    stop_dlockfs B
}

start_zookeeper
chmod 755 "$dir" # others use the mounts as well
scene late told_late
scene stopped stopped
scene deaf deaf
start_dlockfs A --session-timeout 10s -o on_revoke=SIGUSR1
start_dlockfs B --session-timeout 10s

# Each host asks for what A holds, by flock, exclusive open and record lock.
for host in A B; do
    for kind in "open ex" excl "open w:0-9"; do
        # shellcheck disable=SC2086
        call holder "$dir/A/job" catch=SIGUSR1 $kind watch fsync await="$dir/asked" un u:0- poll token hold
        wait_claims job 1
        wait_until "$deadline" grep -qE "^(ex|excl|w:0-9) ok" "$dir/holder.out"
        expect_equal "revoke on $host" ok "$(steer revoke "$dir/$host" job 1)"

        wait_until "$deadline" grep -q '^fsync ok' "$dir/holder.out"
        wait_until "$deadline" grep -q '^caught SIGUSR1' "$dir/holder.out"
        wait_until "$deadline" logged A "job: uid=0,pid=[0-9]+,host=[^ ]+ asks for the lock, which process $(pid holder) holds"
        wait_until "$deadline" logged "$host" "job: uid=0,.* has asked for claim _c_"
        go asked
        if [ "$kind" != excl ]; then
            wait_until "$deadline" grep -q '^poll' "$dir/holder.out"
            expect_equal "after the release" "poll IN+OUT" "$(grep '^poll' "$dir/holder.out")"
        fi
        release holder
        rm "$dir/asked"
        wait_claims job 0
    done
done

# Who locks once more what it holds is still asked.
call holder "$dir/A/job" catch=SIGUSR1 open ex await="$dir/asked" ex watch un hold
expect holder "ex ok"
expect_equal "revoke" ok "$(steer revoke "$dir/A" job 1)"
wait_until "$deadline" grep -q '^caught SIGUSR1' "$dir/holder.out"
go asked
expect holder "un ok" 50 # without POLLPRI it would be 60 s
release holder
rm "$dir/asked"
wait_claims job 0

# What is released by closing another descriptor is not asked for any more.
"$python" - "$dir/A/job" "$python" "$tests/lib/steer.py" revoke "$dir/A" job 1 >"$dir/polled" <<'END'
import fcntl, os, select, signal, subprocess, sys
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(lock, fcntl.LOCK_EX, 10)
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
poll = select.poll()
poll.register(lock, select.POLLPRI)
print(len(poll.poll(0)))
os.close(os.open(sys.argv[1], os.O_RDWR))
print(len(poll.poll(0)))
END
expect_equal "POLLPRI before and after the release" "1 0" "$(paste -sd ' ' "$dir/polled")"
wait_claims job 0

# Each takes it away.
for host in A B; do
    call holder "$dir/A/job" open ex watch fsync write=more hold
    expect holder "ex ok"
    call second "$dir/A/job" open ex hold
    wait_claims job 2
    call third "$dir/B/job" open ex hold
    wait_claims job 3
    # A waiter goes to the end of the queue.
    expect_equal "breaking the wait on $host" ok "$(steer break "$dir/$host" job 2)"
    wait_claims job 3
    expect_equal "revoking a waiter" EINVAL "$(steer revoke "$dir/A" job 3)"
    expect_equal "breaking the lock on $host" ok "$(steer break "$dir/$host" job 1)"
    expect holder "watch ERR+HUP"
    expect holder "fsync EIO"
    expect third "ex ok"
    if said second "ex ok"; then
        fail "a broken wait did not go to the end"
    fi
    wait_until "$deadline" logged A "error: job: uid=0,pid=[0-9]+,host=[^ ]+ has broken the lock of process $(pid holder)"
    wait_until "$deadline" logged "$host" "job: uid=0,.* has broken claim _c_"
    release third
    expect second "ex ok"
    release holder second
    wait_claims job 0
done

# Clients of other kinds. Curator's Revoker puts one word into the data of the claim that is to go, and so do we.
zookeeper make /dlockfs/job
start curator "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address zk)" hold /dlockfs/job _c_00000000-0000-4000-8000-000000000000-__WRIT__ x
wait_claims job 1
expect_equal "revoking Curator's" ok "$(steer revoke "$dir/A" job 1)"
claim=$(zookeeper claims /dlockfs/job)
expect_equal "what Curator is told" "__REVOKE__" "$(zookeeper data "/dlockfs/job/$claim")"
call waiter "$dir/A/job" catch=SIGUSR1 open ex watch hold
wait_claims job 2
expect_equal "breaking Curator's" ok "$(steer break "$dir/A" job 1)"
expect waiter "ex ok"
release curator
wait_claims job 1
claim=$(zookeeper claims /dlockfs/job)
zookeeper put "/dlockfs/job/$claim" __REVOKE__
wait_until "$deadline" grep -q '^caught SIGUSR1' "$dir/waiter.out"
wait_until "$deadline" logged A "job: another-client asks for the lock"
restored() {
    zookeeper data "/dlockfs/job/$claim" | finds '^host='
}
wait_until "$deadline" restored
release waiter
wait_claims job 0

# Who may: root, and the user whose claim it is. The lock file says nothing: anybody can make it, also anew.
as_user() {
    setpriv --reuid="$1" --clear-groups timeout "$deadline" "$python" "$(for_others "$tests/lib/steer.py")" "${@:2}"
}
start holder setpriv --reuid=1234 --clear-groups "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/A/users" catch=SIGUSR1 open mode=644 ex hold
expect holder "ex ok"
wait_claims users 1
expect_equal "a stranger on this host" EPERM "$(as_user 4321 break "$dir/A" users 1)"
expect_equal "a stranger on another host" EPERM "$(as_user 4321 break "$dir/B" users 1)"
start toucher setpriv --reuid=4321 --clear-groups "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/B/users" open hold
expect toucher "open ok"
expect_equal "a stranger who has made the file on another host" EPERM "$(as_user 4321 revoke "$dir/B" users 1)"
expect_equal "its user on another host" ok "$(as_user 1234 revoke "$dir/B" users 1)"
rm "$dir/A/users"
start remaker setpriv --reuid=4321 --clear-groups "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/A/users" open hold
expect remaker "open ok"
expect_equal "a stranger who has made the file anew" EPERM "$(as_user 4321 break "$dir/A" users 1)"
expect_equal "its user on this host" ok "$(as_user 1234 break "$dir/A" users 1)"
release holder toucher remaker
wait_claims users 0
scenes_end
