#!/bin/bash
# The session of a host ends while processes hold record locks: another host gets them; through the handles that they were taken
# with everything but fstat and close is EIO, poll wakes; waiters queue again; and a handle opened afterwards works.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

hosts() {
    start_proxy link
    start_dlockfs A --session-timeout 8s --store "$(proxied link)"
    start_dlockfs B --session-timeout 2m
}

session_ends() { # OFD: "", or "ofd-", for locks of open files
    local ofd=$1
    hosts
    call holder "$dir/A/${ofd}job" open write=mine "${ofd}w:0-10" "${ofd}r:20-30" "${ofd}w:100-" await="$dir/lost" \
        fstat read write=more truncate=0 fsync "${ofd}w-nb:50-50" "${ofd}w:0-0" "${ofd}r-nb:5-5" "${ofd}u:0-10" "${ofd}get-w:60-60" \
        ex-nb sh un fstat close open "${ofd}w-nb:50-50" "${ofd}w-nb:0-0" poll close hold
    expect holder "${ofd}w:100- ok"
    # Processes that hold other parts of the same file, or only wait for it, are told on their own.
    call reader "$dir/A/${ofd}job" open "${ofd}r:20-25" watch hold
    expect reader "${ofd}r:20-25 ok"
    call waiter "$dir/A/${ofd}job" open "${ofd}w:25-26" poll fsync hold
    call idle "$dir/A/${ofd}job" open await="$dir/lost" fsync "${ofd}w-nb:60-61" hold
    call poller "$dir/A/${ofd}polled" open "${ofd}w:7-7" poll ewatch hold
    wait_until "$deadline" asleep waiter
    wait_until "$deadline" said poller "poll IN+OUT"
    call rival "$dir/B/${ofd}job" open "${ofd}w:0-19" "${ofd}w:27-40" "${ofd}w:1000-1000" await="$dir/next" close hold
    call other "$dir/B/${ofd}polled" open "${ofd}w:0-" hold
    wait_claims "${ofd}polled" 2

    cut_link link
    expect rival "${ofd}w:1000-1000 ok"
    expect other "${ofd}w:0- ok"
    join_link link

    # The waiter has nothing to wait for once it has queued again under a new session.
    expect waiter "${ofd}w:25-26 ok"
    wait_until "$deadline" said waiter "fsync ok"
    expect reader "watch ERR+HUP"
    expect poller "ewatch ERR+HUP"
    go lost
    expect holder "poll IN+OUT"
    expect_equal "on the lost handle" \
        "fstat ok,read EIO,write EIO,truncate EIO,fsync EIO,w-nb:50-50 EIO,w:0-0 EIO,r-nb:5-5 EIO,u:0-10 EIO,get-w:60-60 EIO,\
ex-nb EIO,sh EIO,un EIO,fstat ok,close ok,open ok,w-nb:50-50 ok,w-nb:0-0 EAGAIN,poll IN+OUT" \
        "$(sed '1,/^await/d; s/^ofd-//; /^poll/q' "$dir/holder.out" | paste -sd,)"
    expect idle "${ofd}w-nb:60-61 ok"
    said idle "fsync ok" || fail "a handle that held nothing: $(paste -sd, "$dir/idle.out")"
    go next
    expect rival "close ok"
    release holder reader waiter idle poller rival other
    rm "$dir/next" "$dir/lost"
    wait_claims "${ofd}job" 0
    wait_claims "${ofd}polled" 0
}

# A short cut is no loss, for those who hold and those who wait.
short_cut() {
    hosts
    start_dlockfs C --session-timeout 30s --store "$(proxied link)"
    call holder "$dir/C/short" open r:0-10 w:20-30 await="$dir/end" w-nb:0-10 fsync u:0-5 hold
    expect holder "w:20-30 ok"
    call rival "$dir/B/short" open w:0-5 hold
    zookeeper wait-text /dlockfs/short waits= "$deadline"
    cut_link link
    sleep 0.5
    join_link link
    go end
    expect holder "u:0-5 ok"
    expect_equal "after a short cut" "w-nb:0-10 ok,fsync ok,u:0-5 ok" "$(tail -n 3 "$dir/holder.out" | paste -sd,)"
    expect rival "w:0-5 ok"
    release holder rival
}

# The daemon dies: the locks are free after the session timeout.
daemon_dies() {
    hosts
    call holder "$dir/A/dead" open w:5-5 hold
    expect holder "w:5-5 ok"
    call waiter "$dir/B/dead" open r:0-10 hold
    wait_claims dead 2
    kill_dlockfs A
    expect waiter "r:0-10 ok"
    release holder waiter
}

start_zookeeper
scene process session_ends ""
scene file session_ends ofd-
scene short short_cut
scene dead daemon_dies
scenes_end
