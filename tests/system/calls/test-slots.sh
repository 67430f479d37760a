#!/bin/bash
# slots: on ZooKeeper and on etcd, with three hosts, never more hold a lock than may, each by a number of its own and with growing
# tokens, also when a host dies or its daemon is followed by another, and with min_hold and lock_delay; what is shown of that, what is
# refused, and that N can be changed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

configure() { # SLOTS
    cat >"$dir/ini" <<END
[locks "job*"]
slots = $1
[locks "last*"]
slots = 2
[locks "last-rest"]
min_hold = 1h
[locks "last-lost"]
lock_delay = 1h
END
}

# fields HOST LOCK: of each claim its place, state and slot.
fields() {
    sed -n 's/^position=\([0-9]*\) state=\([a-z]*\) mode=exclusive slots=\([0-9]*\)\( slot=\([0-9]*\)\)\? .*/\1:\2:\5 of \3/p' \
        "$dir/$1/.dlockfs/locks/$2" | paste -sd,
}

fields_are() {
    [ "$(fields "$1" "$2")" = "$3" ]
}

waiters_are() { # HOST NUMBER
    grep -qx "waiters=$2" "$dir/$1/.dlockfs/status"
}

start_hosts() {
    local host
    configure 3
    for host in A B C; do
        start_dlockfs "$host" --config "$dir/ini" --session-timeout 5s
    done
}


# Twelve on three hosts want three slots; one host dies on the way, with all its processes.
contend() {
    local marks=$dir/marks-${store%%:*} host
    local -A turns=([A]=30 [B]=30 [C]=1000000) # C goes on until it dies
    mkdir "$marks"
    for host in A B C; do
        start "workers$host" "$python" "$tests/lib/slots.py" 3 "$marks" "${turns[$host]}" "$dir/$host"/{job,job,job,job}
    done
    wait_until "$deadline" test -s "$marks/2"
    release workersC
    kill_dlockfs C
    finish workersA 120 || fail "$(<"$dir/workersA.out")"
    finish workersB 120 || fail "$(<"$dir/workersB.out")"
    wait_claims job 0
}

# Another program goes on in place of the daemon of A.
restart() {
    send_signal A USR2
    wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
}

told_twice() { # NAME LINE
    [ "$(grep -cx "$2" "$dir/$1.out")" -eq 2 ]
}

# Who holds, and who waits, is told on all hosts alike, also by the next daemon.
show() {
    call one "$dir/A/job" open ex slot await="$dir/let" slot hold
    expect one "slot 0"
    call two "$dir/B/job" excl slot await="$dir/let" close hold
    expect two "slot 1"
    call three "$dir/A/job" open ex-nb slot hold
    expect three "slot 2"
    expect_status 1 flock -n "$dir/B/job" true
    expect_status 1 flock -n "$dir/A/job" true
    hold four "$dir/B/job"
    wait_until "$deadline" waiters_are B 1
    hold five "$dir/A/job"
    wait_until "$deadline" waiters_are A 1
    wait_until "$deadline" fields_are A job "1:held:0 of 3,2:held:1 of 3,3:held:2 of 3,4:waiting: of 3,5:waiting: of 3"
    wait_until "$deadline" fields_are B job "1:held:0 of 3,2:held:1 of 3,3:held:2 of 3,4:waiting: of 3,5:waiting: of 3"
    expect_equal "dlockctl" "0 1 2 null null" \
        "$("$dlockctl" --mount "$dir/A" show --json job | jq -r '[.locks[0].claims[].slot | tostring] | join(" ")')"
    "$dlockctl" --mount "$dir/A" show job | grep -q 'slot 1 of 3' || fail "not shown: slot 1 of 3"
    expect_status 1 "$dlockctl" --mount "$dir/A" wait -w 0 job
    restart
    go let
    expect four held
    wait_until "$deadline" told_twice one "slot 0"
    wait_until "$deadline" fields_are A job "1:held:0 of 3,2:held:2 of 3,3:held:1 of 3,4:waiting: of 3"
}

# More are let in at once; of fewer, as others end.
change() {
    configure 4
    for host in A B; do
        send_signal "$host" HUP
    done
    expect five held
    configure 2
    for host in A B; do
        send_signal "$host" HUP
        wait_until "$deadline" reloaded "$host" 2
    done
    hold six "$dir/B/job"
    wait_until "$deadline" waiters_are B 1
    release one three
    wait_until "$deadline" fields_are B job "1:held:1 of 3,2:held:3 of 3,3:waiting: of 2"
    release four
    expect six held
    release five six two
    wait_claims job 0
    rm "$dir/let"
}

reloaded() { # HOST TIMES
    [ "$(grep -c 'configuration has been read anew' "$dir/$1.log")" -ge "$2" ]
}

# Only exclusive locks, of the whole file; and no number where there is one slot.
refuse() {
    call calls "$dir/A/job-$1" open sh w-nb:0-9 get-w:0- ex slot close file="$dir/A/other" open ex slot un token
    finish calls
    expect_equal "calls" "open ok,sh EINVAL,w-nb:0-9 EINVAL,get-w:0- EINVAL,ex ok,slot 0,close ok,file ok,open ok,ex ok,slot ENODATA,un ok,token ENODATA" \
        "$(paste -sd, <"$dir/calls.out")"
    # shellcheck disable=SC2016
    expect_equal "dlockctl run" "0 1" "$("$dlockctl" --mount "$dir/A" run job-run sh -c \
        'echo "$DLOCK_SLOT $("$0" --mount "$1" run job-run sh -c "echo \$DLOCK_SLOT")"' "$dlockctl" "$dir/B")"
    # shellcheck disable=SC2016
    expect_equal "dlockctl run with one slot" none "$(DLOCK_SLOT=7 "$dlockctl" --mount "$dir/A" run other sh -c 'echo "${DLOCK_SLOT-none}"')"
}

# A slot that rests, or whose holder was lost, is nobody else's, and nor is its number: whatever becomes of the daemon and its host,
# and also to a host that comes later.
last() {
    call rests "$dir/A/last-rest" open ex slot un hold
    expect rests "un ok"
    call lost "$dir/A/last-lost" open ex slot hold
    expect lost "slot 0"
    restart A
    wait_until "$deadline" fields_are A last-rest "1:resting:0 of 2"
    wait_until "$deadline" fields_are A last-lost "1:held:0 of 2"
    kill_dlockfs A
    release rests lost
    wait_until "$deadline" fields_are B last-rest "1:lost:0 of 2"
    wait_until "$deadline" fields_are B last-lost "1:lost:0 of 2"
    for lock in rest lost; do
        call "$lock-next" "$dir/B/last-$lock" open ex slot hold
        expect "$lock-next" "slot 1"
        expect_status 1 flock -n "$dir/B/last-$lock" true
        release "$lock-next"
    done
    stop_dlockfs B
}

for kind in zookeeper etcd; do
    "start_$kind"
    start_hosts
    contend
    show
    change
    refuse $kind
    last
    rm -f "$dir"/[AB].log
done
