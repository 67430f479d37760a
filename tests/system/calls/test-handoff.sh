#!/bin/bash
# handoff and keep on two hosts: what one host does by itself costs no request to the server, the other host gets what is
# kept at once, and its turn after a bounded number of hand-overs; every view tells who uses the lock, and who does not.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# Heartbeats come so seldom that they do not disturb who counts requests.
cat >"$dir/ini" <<END
[store]
session_timeout = 10m
[locks]
try_limit = 60s
keep = 1h
handoff = 2
[locks "brief"]
keep = 700ms
[locks "plain"]
keep = 0ms
handoff = 0
END
cat >"$dir/host_b" <<END
#!/bin/sh
exec unshare --uts sh -c 'hostname host-b && exec "\$@"' - "$dlockfs" "\$@"
END
chmod +x "$dir/host_b"
start_zookeeper
start_dlockfs A --config "$dir/ini"
dlockfs=$dir/host_b start_dlockfs B --config "$dir/ini"

# requests COMMAND...: sets the variable number to how many requests it made.
requests() {
    local before
    before=$(zookeeper_received)
    "$@"
    number=$(($(zookeeper_received) - before - 1))
}

# quietly COMMAND...: it makes no request. Once it may coincide with a heartbeat, but not each time.
quietly() {
    local attempt
    for attempt in 1 2 3; do
        requests "$@"
        [ "$number" -gt 0 ] || return 0
    done
    fail "$number requests, $attempt times: $*"
}

# queue HOST LOCK: each line with its position, state and process, and what may be otherwise.
queue() {
    sed -n 's/^\(position=[^ ]* state=[^ ]*\( maybe_[^ ]*\)*\).*\( pid=[^ ]*\).*/\1\3/p; t; /^position/s/ mode=.*//p' \
        "$dir/$1/.dlockfs/locks/$2"
}

queue_is() {
    [ "$(queue "$1" "$2")" = "$3" ]
}

# expect_queue HOST LOCK LINE...
expect_queue() {
    local host=$1 lock=$2 lines
    shift 2
    printf -v lines '%s\n' "$@"
    wait_until "$deadline" queue_is "$host" "$lock" "${lines%$'\n'}"
}

status() {
    sed -n "s/^$2=//p" "$dir/$1/.dlockfs/status"
}

ten_times() {
    local left
    for ((left = 10; left > 0; left--)); do
        "$@"
    done
}

steps() {
    "$python" "$tests/lib/calls.py" "$@" >"$dir/steps"
}

# keep: once it is placed, the claim serves all callers, in all ways, and nobody asks the server.
flock "$dir/A/job" true
quietly ten_times flock "$dir/A/job" true
quietly ten_times flock -n "$dir/A/job" true
quietly steps "$dir/A/job" open ex un ex close excl close excl-nb close
expect_equal "calls" "open ok,ex ok,un ok,ex ok,close ok,excl ok,close ok,excl-nb ok" \
    "$(head -n 8 "$dir/steps" | paste -sd,)"
requests ten_times flock "$dir/A/plain" true
[ "$number" -ge 20 ] || fail "$number requests for ten locks without keep"

# What is kept is nobody's.
expect_queue A job "position=1 state=kept"
expect_queue B job "position=1 state=held maybe_kept=yes maybe_former=yes pid=$(sed -n 's/.* pid=\([0-9]*\).*/\1/p' "$dir/B/.dlockfs/locks/job")"
expect_equal "the lock" "lock=job claims=1 holders=0 kept=1,lock=job claims=1 holders=1" \
    "$(head -qn 1 "$dir"/[AB]/.dlockfs/locks/job | paste -sd,)"
expect_equal "status" "0 1 0 dlockfs_kept_claims 1" \
    "$(status A holders) $(status A kept) $(status B kept) $(grep ^dlockfs_kept "$dir/A/.dlockfs/metrics")"
"$dlockctl" --mount "$dir/A" wait -w 0 job
expect_status 1 "$dlockctl" --mount "$dir/B" wait -w 0 job

# The other host has it at once, however it asks; and this one again.
for command in "flock -n" "flock" "flock -ns" "flock -s"; do
    # shellcheck disable=SC2086
    timeout "$deadline" $command "$dir/B/job" true
    timeout "$deadline" flock -n "$dir/A/job" true
    expect_queue A job "position=1 state=kept"
done
for step in excl-nb excl w-nb:0-9 w:0-; do
    flock "$dir/A/job" true
    expect_queue A job "position=1 state=kept"
    timeout "$deadline" "$python" "$tests/lib/calls.py" "$dir/B/job" open "$step" get-w:0- >"$dir/steps"
    grep -qx "$step ok" "$dir/steps" || fail "$(<"$dir/steps")"
done

# While it is used it is refused; a shared lock is shared, by a conversion, too.
call user "$dir/A/job" open ex await="$dir/shared" sh await="$dir/unlocked" un hold
expect user "ex ok"
expect_status 1 timeout "$deadline" flock -n "$dir/B/job" true
expect_status 1 soon flock -n "$dir/A/job" true
expect_queue A job "position=1 state=held pid=$(pid user)"
go shared
expect user "sh ok"
timeout "$deadline" flock -ns "$dir/B/job" true
expect_status 1 timeout "$deadline" flock -n "$dir/B/job" true
go unlocked
expect user "un ok"
comes_free "$dir/B/job"
release user

# Asked for, or taken away, it is gone at once.
for command in revoke "break --yes"; do
    flock "$dir/A/job" true
    # shellcheck disable=SC2086
    "$dlockctl" --mount "$dir/A" $command job >"$dir/steer"
    grep -q "$(hostname)" "$dir/steer"
    wait_until "$deadline" queue_is A job ""
done

# It is gone when its time is over, not before.
begin=$(now_ms)
flock "$dir/A/brief" true
wait_until "$deadline" queue_is A brief ""
[ $(($(now_ms) - begin)) -ge 700 ] || fail "gone after $(($(now_ms) - begin)) ms"

status_is() {
    [ "$(status "$1" "$2")" = "$3" ]
}

# waiters HOST NUMBER...: which note their number when they have the lock, in this order.
waiters() {
    local host=$1 number before
    shift
    for number; do
        before=$(status "$host" waiters)
        # shellcheck disable=SC2016
        start "waiter$number" flock "$dir/$host/many" sh -c 'echo "$1" >>"$2"' - "$number" "$dir/order"
        wait_until "$deadline" status_is "$host" waiters $((before + 1))
    done
}

# expect_order NUMBER...: the waiters had the lock in this order.
expect_order() {
    local number
    for number; do
        finish "waiter$number"
    done
    expect_equal "order" "$*" "$(paste -sd' ' "$dir/order")"
    rm "$dir/order"
}

# handoff: callers of one host, one after the other, in their order.
pass_on() {
    hold first "$dir/A/many"
    expect first held
    waiters A 1 2 3 4 5
    release first
    expect_order 1 2 3 4 5
}
flock "$dir/A/many" true
quietly pass_on

# Two of them go on before the other host, which knows no more of them than the first.
hold first "$dir/A/many"
expect first held
waiters A 1 2 3
waiters B 4
waiters A 5
expect_queue B many "position=1 state=held maybe_former=yes pid=$(pid first)" "position=2 state=waiting pid=$(pid waiter4)"
expect_queue A many "position=1 state=held pid=$(pid first)" "position=1.1 state=waiting pid=$(pid waiter1)" \
    "position=1.2 state=waiting pid=$(pid waiter2)" "position=1.3 state=waiting pid=$(pid waiter3)" \
    "position=1.4 state=waiting pid=$(pid waiter5)" "position=2 state=waiting maybe_former=yes pid=$(pid waiter4)"
expect_equal "waiters" "4 1" "$(status A waiters) $(status B waiters)"
release first
expect_order 1 2 4 3 5

# Each has a token of its own. With the session, whoever holds loses the lock, and nobody else.
start_proxy link
start_dlockfs C --config "$dir/ini" --session-timeout 10s --store "$(proxied link)"
call former "$dir/C/lost" open ex token await="$dir/passed" un await="$dir/cut" fsync un hold
expect former "ex ok"
call holder "$dir/C/lost" open ex token await="$dir/cut" fsync ex-nb hold
wait_until "$deadline" status_is C waiters 1
go passed
expect holder "ex ok"
wait_until "$deadline" grep -q ^token "$dir/holder.out"
tokens() {
    sed -n 's/^token //p' "$dir/former.out" "$dir/holder.out"
}
tokens | sort -nuc || fail "tokens: $(tokens)"
hold rival "$dir/B/lost"
wait_until "$deadline" status_is B waiters 1
cut_link link
expect rival held
go cut
expect holder "ex-nb EIO"
expect holder "fsync EIO"
expect former "fsync ok"
expect former "un ok"
join_link link
release rival former holder
timeout "$deadline" flock "$dir/C/lost" true
