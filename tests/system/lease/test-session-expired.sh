#!/bin/bash
# One host is cut off for longer than its session lives: the other gets the lock; the holder that lost it gets EIO for
# everything but fstat and close, and is woken from poll; its waiters queue again; new locks work.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_proxy link
start_dlockfs A --session-timeout 8s --store "$(proxied link)"
start_dlockfs B --session-timeout 2m

for kind in "open ex" excl; do
    # shellcheck disable=SC2086
    call holder "$dir/A/job" $kind write=mine await="$dir/lost" \
        fstat read write=more truncate=0 ex-nb sh un fsync fstat close open ex-nb close hold
    expect holder "write 4"
    call queued "$dir/A/other" open ex hold
    expect queued "ex ok"
    call other "$dir/B/other" open ex await="$dir/next" close hold
    wait_claims other 2
    call waiter "$dir/A/third" open ex hold
    hold third "$dir/B/third"
    release waiter
    expect third held
    call waiter "$dir/A/third" open ex hold
    wait_claims third 2
    call rival "$dir/B/job" open ex await="$dir/next" close hold
    wait_claims job 2
    # shellcheck disable=SC2086
    call poller "$dir/A/polled" $kind poll watch poll close open ex poll hold
    # shellcheck disable=SC2086
    call epoller "$dir/A/epolled" $kind ewatch hold
    wait_claims polled 1
    wait_claims epolled 1

    cut_link link
    expect rival "ex ok"
    expect other "ex ok"
    join_link link

    # The waiter stands in the queue again, under a new session.
    wait_claims third 2
    if said waiter "ex ok"; then
        fail "the waiter got what is held"
    fi
    # The handle that held is lost for good; a new one is like any other.
    go lost
    expect holder "ex-nb EAGAIN"
    expect_equal "on the lost handle" \
        "fstat ok,read EIO,write EIO,truncate EIO,ex-nb EIO,sh EIO,un EIO,fsync EIO,fstat ok,close ok,open ok" \
        "$(sed '1,/^await/d; /^open/q' "$dir/holder.out" | paste -sd,)"
    release third
    expect waiter "ex ok"
    go next
    expect rival "close ok"
    wait_until "$deadline" flock -n "$dir/A/job" true
    expect epoller "ewatch ERR+HUP"
    expect poller "close ok"
    expect_equal "poll" "IN+OUT,ERR+HUP,ERR+HUP" "$(sed -n '/^close/q; s/^poll //p; s/^watch //p' "$dir/poller.out" | paste -sd,)"
    wait_until "$deadline" said poller "poll IN+OUT"
    release holder queued other waiter rival poller epoller
    rm "$dir/next" "$dir/lost"
    wait_claims job 0
    wait_claims other 0
    wait_claims third 0
done

# A short cut is no loss.
start_dlockfs C --session-timeout 20s --store "$(proxied link)"
call holder "$dir/C/short" open ex write=mine await="$dir/lost" read sh ex-nb hold
expect holder "write 4"
cut_link link
sleep 0.5
join_link link
go lost
expect holder "ex-nb ok"
expect_equal "after a short cut" "read 'mine',sh ok,ex-nb ok" "$(tail -n 3 "$dir/holder.out" | paste -sd,)"
