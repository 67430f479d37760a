#!/bin/bash
# The store refuses to create claims, or to delete them, for want of rights: calls fail with ENOLCK at once, the log names the
# znode and the reason, but not for each call; what is given back stays taken until it can be; when the rights are there, all
# works again.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
zookeeper make /dlockfs/job
zookeeper make /dlockfs/deep/below
start_dlockfs A --session-timeout 60s
start_dlockfs B --session-timeout 60s
expect_status 0 flock -n "$dir/A/other" true

# lines WHAT: how many lines of A's log have all of that.
lines() {
    grep -c "$1" "$dir/A.log" || true
}

# refuses LOCK ZNODE: each kind of call on the lock fails, soon, and says why.
refuses() {
    local before begin took
    before=$(lines "/dlockfs/$2.*not authenticated")
    begin=$(now_ms)
    call try "$dir/A/$1" open ex ex-nb sh excl excl-nb w:0-9 w-nb:0-9 close
    finish try
    took=$(($(now_ms) - begin))
    expect_equal "calls on $1" "open ok,ex ENOLCK,ex-nb ENOLCK,sh ENOLCK,excl ENOLCK,excl-nb ENOLCK,w:0-9 ENOLCK,\
w-nb:0-9 ENOLCK,close ok" "$(paste -sd, "$dir/try.out")"
    echo "$1: refused 7 times in $took ms"
    # Neither try_limit nor a repetition of a second each.
    [ "$took" -lt 5000 ] || fail "that took too long"
    expect_status 71 flock "$dir/A/$1" true 2>"$dir/flock.err"
    grep -qi 'no locks available' "$dir/flock.err"
    expect_equal "lines that tell of $2" 1 $(($(lines "/dlockfs/$2.*not authenticated") - before))
    expect_equal "lines that tell of $1" 1 "$(lines "error: $1: the store refuses")"
}

# The lock's own znode, then one in between, then the root: there new locks are not to be had.
zookeeper allow /dlockfs/job read
refuses job job/
mkdir "$dir/A/deep" "$dir/B/deep"
zookeeper allow /dlockfs/deep read
refuses deep/new deep/new
flock -n "$dir/A/deep/below" true
zookeeper allow /dlockfs read
refuses new new
flock -n "$dir/A/other" true
# Who has a lock already is not concerned, nor who waits for one.
call holder "$dir/A/other" open ex await="$dir/close" fsync close hold
expect holder "ex ok"
call waiter "$dir/B/other" open ex hold
wait_claims other 2
zookeeper allow /dlockfs/other read
call late "$dir/B/other" open ex hold
expect late "ex ENOLCK"

# The claim cannot be deleted: the lock stays taken, and that is told, not too often.
go close
expect holder "close ok"
expect_equal "who held" "fsync ok,close ok" "$(tail -n 2 "$dir/holder.out" | paste -sd,)"
sleep 3
if said waiter "ex ok"; then
    violation "granted beside the claim in front"
fi
told=$(lines '/dlockfs/other/.*not authenticated')
if [ "$told" -lt 1 ] || [ "$told" -gt 5 ]; then
    fail "$told lines tell in 3 s that a claim cannot be deleted"
fi
zookeeper allow /dlockfs/other all
expect waiter "ex ok"
release waiter
comes_free "$dir/A/other"

zookeeper allow /dlockfs/job all
zookeeper allow /dlockfs/deep all
zookeeper allow /dlockfs all
for lock in job deep/new new; do
    call again "$dir/A/$lock" open ex un sh un w:0-9 close excl-nb close
    finish again
    if grep ' E' "$dir/again.out"; then
        fail "$lock does not work again"
    fi
    comes_free "$dir/B/$lock"
done
if grep 'lock lost\|giving it up\|expired' "$dir"/[AB].log; then
    fail "a session was lost"
fi
