#!/bin/bash
# Somebody deletes claims in ZooKeeper by hand: who held by them is fenced, with the next heartbeat at the latest, who waited by
# them is queued again by itself, and no other lock of that host is lost.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

start_zookeeper
start_dlockfs A --session-timeout 12s
start_dlockfs B --session-timeout 12s

# delete_claim NUMBER: of the lock "job", counted from the front.
delete_claim() {
    zookeeper delete "/dlockfs/job/$(zookeeper claims /dlockfs/job | sed -n "$1p")"
    begin=$(now_ms)
}

call second "$dir/A/second" open ex watch hold
expect second "ex ok"

# The holder, with and without somebody behind it.
for kind in "open ex" excl "open w:0-9"; do
    for behind in yes no; do
        # shellcheck disable=SC2086
        call holder "$dir/A/job" $kind write=mine watch poll \
            fstat read write=more truncate=0 ex-nb sh un w-nb:0-9 fsync fstat close open ex-nb close hold
        expect holder "write 4"
        if [ $behind = yes ]; then
            call rival "$dir/B/job" open ex hold
            wait_claims job 2
        fi
        told=$(grep -c '^dlockfs: error: job: claim .* was taken away' "$dir/A.log" || true)
        delete_claim 1
        wait_until "$deadline" grep -q '^watch' "$dir/holder.out"
        echo "$kind, with somebody behind: $behind: noticed after $(($(now_ms) - begin)) ms"
        expect holder "close ok"
        wait_until "$deadline" grep -q '^ex-nb [oE][kA]' "$dir/holder.out"
        expect_equal "on the lost handle" "watch ERR+HUP,poll ERR+HUP,\
fstat ok,read EIO,write EIO,truncate EIO,ex-nb EIO,sh EIO,un EIO,w-nb:0-9 EIO,fsync EIO,fstat ok,close ok,open ok" \
            "$(sed '1,/^write 4/d' "$dir/holder.out" | sed '/^open/q' | paste -sd,)"
        expect_equal "lines in the log" $((told + 1)) \
            "$(grep -c '^dlockfs: error: job: claim .* was taken away' "$dir/A.log" || true)"
        if [ $behind = yes ]; then
            expect rival "ex ok"
            release rival
        fi
        release holder
        comes_free "$dir/A/job"
        comes_free "$dir/B/job"
        wait_claims job 0
    done
done

# A waiter, of the host whose claim is in front and of the other one: it queues again, at the end.
for host in A B; do
    keep holder "$dir/A/job" flock
    wait_until "$deadline" granted holder
    keep waiter "$dir/$host/job" excl
    wait_claims job 2
    keep next "$dir/B/job" flock
    wait_claims job 3
    before=$(zookeeper claims /dlockfs/job)
    delete_claim 2
    queued_again() {
        local now
        now=$(zookeeper claims /dlockfs/job)
        [ "$(wc -l <<<"$now")" -eq 3 ] && [ "$(sed -n 1,2p <<<"$now")" = "$(sed -n '1p;3p' <<<"$before")" ]
    }
    wait_until "$deadline" queued_again
    echo "waiter at $host: queued again after $(($(now_ms) - begin)) ms at most"
    not_granted next
    not_granted waiter
    not_fenced holder
    release holder
    wait_until "$deadline" granted next
    not_granted waiter
    release next
    wait_until "$deadline" granted waiter
    not_fenced waiter
    release waiter
    wait_claims job 0
done

# All claims of a lock at once. Who stood behind the front may be granted when that goes, and then find its own gone, too;
# whoever has not been told of the grant by then, is told EIO.
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
names=(waiter-A waiter-B)
keep waiter-A "$dir/A/job" excl
wait_claims job 2
keep waiter-B "$dir/B/job" flock
wait_claims job 3
zookeeper delete-claims /dlockfs/job
wait_until "$deadline" fenced holder
grep -q '^fenced EIO ' "$dir/holder.out" || fail "not EIO: $(grep fenced "$dir/holder.out")"
# settled: who has not lost a lock stands in the queue, and the first of them has the lock. Sets the array left, and holds.
settled() {
    local name
    left=() holds=
    for name in "${names[@]}"; do
        fenced "$name" || grep -q '^refused EIO ' "$dir/$name.out" || left+=("$name")
    done
    zookeeper wait-claims /dlockfs/job ${#left[@]} 0 >"$dir/claims.out" 2>&1 || return 1
    for name in "${left[@]}"; do
        granted "$name" || continue
        [ -z "$holds" ] || violation "$holds and $name hold one lock"
        holds=$name
    done
    [ ${#left[@]} -eq 0 ] || [ -n "$holds" ]
}
wait_until "$deadline" settled
while [ ${#left[@]} -gt 0 ]; do
    names=()
    for name in "${left[@]}"; do
        [ "$name" = "$holds" ] || names+=("$name")
    done
    release "$holds"
    wait_until "$deadline" settled
done
never_revived holder
release holder waiter-A waiter-B
wait_claims job 0
comes_free "$dir/A/job"
comes_free "$dir/B/job"

# Forty locks of one host.
cat >"$dir/many.py" <<'PYTHON'
import fcntl, os, select, sys

poller = select.poll()
for number in range(40):
    fd = os.open(f"{sys.argv[1]}{number}", os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    poller.register(fd, select.POLLPRI)
print("held", flush=True)
lost = set()
while len(lost) < 40:
    for fd, _ in poller.poll():
        try:
            os.pread(fd, 1, 0)
        except OSError:
            poller.unregister(fd)
            lost.add(fd)
print("lost", flush=True)
PYTHON
start many "$python" "$dir/many.py" "$dir/A/many"
expect many held
call rival "$dir/B/many39" open ex hold
wait_claims many39 2
zookeeper delete-claims /dlockfs/many{0..38} "/dlockfs/many39"
begin=$(now_ms)
expect many lost
echo "forty locks: all noticed after $(($(now_ms) - begin)) ms"
wait_until "$deadline" grep -q '^ex \(ok\|EIO\)$' "$dir/rival.out" # its claim went, too
release rival
for number in 0 39; do
    comes_free "$dir/A/many$number"
done

# The second lock of that host, and both sessions.
if grep '^watch .*ERR' "$dir/second.out"; then
    fail "a lock was lost whose claim was not deleted"
fi
expect_status 1 flock -n "$dir/B/second" true
if grep 'session.*lost\|lost.*session\|giving it up\|expired' "$dir"/[AB].log; then
    fail "a session was lost"
fi
