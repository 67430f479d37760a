# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Holders and queues of all kinds on the hosts A and B, for tests in which nobody is to notice what happens to a daemon. The
# lock "kept" has keep, "told" has on_lost. Sourced after functions.sh and lease.sh.

# All claims, as host B sees them.
claims() {
    sed -n 's/.* claim=//p' "$dir/B/.dlockfs/queues"
}

# queued LOCK NUMBER: until so many claims stand in the queue of the lock.
queued() {
    wait_until "$deadline" grep -qx "lock=$1 claims=$2 holders=.*" "$dir/B/.dlockfs/queues"
}

# hold_all: flock, open, range, ofd and token hold, the first two asking all the time whether they still do; behind them
# wait flock-1 to -3 and open-1 to -3 on A, B, A, waits on A, and waits-B.
hold_all() {
    local name number=0 host
    keep flock "$dir/A/flock" flock
    keep open "$dir/A/open" excl
    call range "$dir/A/range" open w:0-9 r:20-29 await="$dir/range" w-nb:5-6 u:0-9 hold
    call ofd "$dir/A/ofd" open ofd-w:0-9 hold
    call token "$dir/A/told" open ex token await="$dir/token" token hold
    flock "$dir/A/kept" true
    for name in flock open; do
        wait_until "$deadline" granted "$name"
    done
    expect range "r:20-29 ok"
    expect ofd "ofd-w:0-9 ok"
    wait_until "$deadline" grep -q '^token [0-9]' "$dir/token.out"
    for host in A B A; do
        number=$((number + 1))
        keep "flock-$number" "$dir/$host/flock" flock
        queued flock $((number + 1))
        keep "open-$number" "$dir/$host/open" excl
        queued open $((number + 1))
    done
    call waits "$dir/A/range" open w:0-29 hold
    queued range 3
    call waits-B "$dir/B/ofd" open w:5-5 hold
    queued ofd 2
}

# all_hold: those of hold_all who hold still do, in every way; the token is the same.
all_hold() {
    go range
    expect range "w-nb:5-6 ok"
    expect range "u:0-9 ok"
    go token
    wait_until "$deadline" eval "[ \"\$(grep -c '^token [0-9]' '$dir/token.out')\" -eq 2 ]"
    expect_equal "tokens" 1 "$(grep '^token [0-9]' "$dir/token.out" | sort -u | wc -l)"
    not_fenced flock
    not_fenced open
}

# release_all COMMAND...: those who wait are granted in the order of the queue, while the command is run before each release; what comes
# last is what came after it.
release_all() {
    local lock number
    release flock open
    for number in 1 2 3; do
        for lock in flock open; do
            wait_until "$deadline" granted "$lock-$number"
            [ "$number" -eq 3 ] || not_granted "$lock-$((number + 1))"
            not_fenced "$lock-$number"
        done
        "$@"
        release "flock-$number" "open-$number"
    done
    release ofd
    expect waits-B "w:5-5 ok"
    release range
    expect waits "w:0-29 ok"
}
