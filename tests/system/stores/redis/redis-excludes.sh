# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Scenes of the mounts A and B with programs that lock keys of Redis; sourced after redis-clients.sh.

host_options=() # of the mounts, besides

# waits NAME: it waits for the lock, and does not hold it.
waits() {
    wait_until "$deadline" asleep "$1"
    ! said "$1" held || violation "$1 holds beside another one"
}

# excludes KIND: one after the other, the client, the mount, the client.
excludes() {
    local lock=excludes-${1//:/-}
    client_hold first "$1" "dlockfs/$lock"
    expect first held
    refused flock -n "$dir/A/$lock" true
    refused flock -n -s "$dir/B/$lock" true
    refused client_try "$1" "dlockfs/$lock"
    hold second "$dir/A/$lock"
    waits second
    client_release first
    expect second held
    refused client_try "$1" "dlockfs/$lock"
    refused flock -n "$dir/B/$lock" true
    client_hold third "$1" "dlockfs/$lock"
    hold reader -s "$dir/B/$lock"
    waits reader
    ! said third held || violation "$1 holds beside the mount"
    release second
    # Who comes first now is chance.
    wait_until "$deadline" eval 'said third held || said reader held'
    if said third held; then
        waits reader
        refused flock -n "$dir/A/$lock" true
        client_release third
        expect reader held
        release reader
    else
        refused client_try "$1" "dlockfs/$lock"
        release reader
        expect third held
        client_release third
    fi
    comes_free "$dir/A/$lock"
    wait_until "$deadline" client_try "$1" "dlockfs/$lock"
}

# killed_client KIND: its key ends by itself.
killed_client() {
    local lock=killed-${1//:/-}
    client_hold victim "$1" "dlockfs/$lock"
    expect victim held
    hold heir "$dir/A/$lock"
    release victim
    expect heir held
    release heir
}

# killed_host KIND: the key of host B ends by itself.
killed_host() {
    local lock=killed-host-${1//:/-}
    hold victim "$dir/B/$lock"
    expect victim held
    client_hold heir "$1" "dlockfs/$lock"
    kill_dlockfs B
    expect heir held
    release victim
    client_release heir
    umount -l "$dir/B"
    start_dlockfs B --session-timeout 5s "${host_options[@]}"
    comes_free "$dir/B/$lock"
}

# count_with KIND...: each of them and both mounts increment one number, under a lock that has its name of the first.
count_with() {
    local kind children=() child lock=count-${1//:/-}
    echo 0 >"$dir/number"
    for kind; do
        if [[ $kind = cli:* ]]; then
            count_cli "$kind" "dlockfs/$lock" 20 &
        else
            client_lock count "$kind" "dlockfs/$lock" "$dir/number" 20 &
        fi
        children+=($!)
    done
    "$python" "$tests/lib/counter.py" flock "$dir/number" 4 200 "$dir/A/$lock" "$dir/B/$lock"
    for child in "${children[@]}"; do
        wait "$child" || violation "a counter failed"
    done
    expect_equal "violation: increments" $((200 + 20 * $#)) "$(<"$dir/number")"
}

# count_cli KIND KEY TIMES
count_cli() {
    local i value lifetime_ms=$((${1#cli:} * 1000))
    for ((i = 0; i < $3; i++)); do
        value=count-$i-$RANDOM
        until [ "$(cli SET "$2" "$value" NX PX "$lifetime_ms")" = OK ]; do
            sleep 0.01
        done
        echo $(($(<"$dir/number") + 1)) >"$dir/number"
        [ "$(cli EVAL "$compare_and_delete" 1 "$2" "$value")" = 1 ]
    done
}
