#!/bin/bash
# A virtual machine is paused, and its clocks stand still, while those of the servers go on: its session ends, and others get
# its locks. What the servers sent it meanwhile, that the claim before its waiter's is gone, comes first, and that they have
# closed the connection only later. When its wall clock was set before, as the hypervisor's agent does, it does not grant that
# lock; when nobody sets the clock, it does.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

preload=$build/tests/system/wall_clock.so
[ -e "$preload" ] || fail "not built: $preload"
export TEST_WALL_CLOCK=$dir/wall-clock
timeout=10000 # milliseconds

# set_clocks AHEAD BEHIND: see wall_clock.c.
set_clocks() {
    echo "$1 $2" >"$TEST_WALL_CLOCK.new"
    mv "$TEST_WALL_CLOCK.new" "$TEST_WALL_CLOCK"
}

jumps() {
    sed -n 's/^dlockfs_clock_jumps_total //p' "$dir/A/.dlockfs/metrics"
}

# logged_jump SECONDS
logged_jump() {
    sed -n 's/.*the clock was set by +\([0-9.]*\) s: .*/\1/p' "$dir/A.log" |
        awk -v "set=$1" '$1 - set < 0.1 && set - $1 < 0.1 { found = 1 } END { exit !found }'
}

start_zookeeper
start_proxy link
start_dlockfs B --session-timeout 2m

# pause_machine NAME SET: A holds NAME-own, waits for NAME-job, which B holds, and is paused until both are others'. Its wall
# clock is then SET to what it should be, or not, before it reads what the servers have sent.
pause_machine() {
    local name=$1 paused seconds
    set_clocks 0 0
    # A sanitizer minds whatever is loaded before it.
    LD_PRELOAD=$preload ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
        launch_dlockfs A --session-timeout "${timeout}ms" --store "$(proxied link)"
    wait_until "$deadline" mount_settled A
    keep "$name-first" "$dir/B/$name-job" flock
    wait_until "$deadline" granted "$name-first"
    keep "$name-own" "$dir/A/$name-own" flock
    wait_until "$deadline" granted "$name-own"
    keep "$name-waiter" "$dir/A/$name-job" flock
    wait_claims "$name-job" 2
    keep "$name-rival" "$dir/B/$name-job" flock
    wait_claims "$name-job" 3
    keep "$name-heir" "$dir/B/$name-own" flock
    wait_claims "$name-own" 2
    sleep $((timeout / 4000)) # so that the lease is renewed, and the waiter's claim watches the one before it

    suspend A
    paused=$(lease now)
    cut_link link
    touch "$dir/link/hold-ends"
    release "$name-first"
    wait_until "$deadline" granted "$name-rival"
    wait_until "$deadline" granted "$name-heir"
    not_granted "$name-waiter"
    seconds=$(awk -v "ms=$(($(lease now) - paused))" 'BEGIN { print ms / 1000 }')
    set_clocks 0 "$seconds" # all clocks are late
    awake A
    expect_equal "times that the clock was set" 0 "$(jumps)"
    not_fenced "$name-own"
    if [ "$2" = set ]; then
        set_clocks "$seconds" "$seconds"
        wait_until "$prompt" logged_jump "$seconds"
        expect_equal "times that the clock was set" 1 "$(jumps)"
    fi
    join_link link
}

pause_machine told set
rm "$dir/link/hold-ends"
wait_until "$deadline" fenced told-own
not_granted told-waiter
expect_equal "its holder" EIO "$(awk '$1 == "fenced" { print $2 }' "$dir/told-own.out")"
# The waiter queues anew, behind those who came meanwhile.
wait_claims told-job 2
release told-rival
wait_until "$deadline" granted told-waiter
not_fenced told-heir
never_revived told-own
release told-own told-heir told-waiter
stop_dlockfs A

# That what was looked at above can be seen: this is what remains of the danger. If the daemon hears of the loss before it tells the
# waiter of the grant, it says EIO instead.
granted_or_refused() {
    granted untold-waiter || refused_waiter
}
refused_waiter() {
    grep -q '^refused EIO ' "$dir/untold-waiter.out"
}
pause_machine untold unset
wait_until "$deadline" granted_or_refused
not_fenced untold-rival
rm "$dir/link/hold-ends"
refused_waiter || wait_until "$deadline" fenced untold-waiter # as soon as it hears from the servers
wait_until "$deadline" fenced untold-own
