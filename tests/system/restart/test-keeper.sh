#!/bin/bash
# A daemon's container is replaced, and what is locked stays: a keeper in a container of its own has the mount and the journal
# meanwhile, and gives them to the next daemon, one at a time, after an upgrade, kill -9 of the container, of the daemon or of the
# keeper. Bind mounts of other containers stay alive. Nobody who goes on: holders learn of it before others get their locks.
#
# test-keeper.sh [TIMES LOCKS]: so many upgrades and so many kills, with so many holders and waiters (3 50).

# Mounts are shared in here, and end with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount --propagation private -- "$0" "$@"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires grep -q 'HAVE_LIBSYSTEMD' "$build/compile_commands.json"
times=${1:-3}
locks=${2:-50}
numbers "$times" "$locks"
keeper=$build/src/keeper/dlockfs-keeper
container=(unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc)
pod=("${container[@]}" --propagation slave --)

begin_volume() {
    share=$dir/share # the volume: what is mounted in it reaches all containers that have it
    mkdir -m 755 "$share" "$share/A" "$share/keeper" "$dir/fixed"
    mount --bind "$share" "$share"
    mount --make-shared "$share"
    number=0
}

# inside NAME: process 1 of that container.
inside() {
    pgrep -P "$(pid "$1")"
}

start_keeper() {
    start "$1" "${container[@]}" -- "$keeper" --socket "$share/keeper/socket" keep
    expect "$1" "dlockfs-keeper: listens at $share/keeper/socket"
}

# launch COMMAND...: one more container, the next one, named $latest.
launch() {
    number=$((number + 1))
    latest=c$number
    start "$latest" "${container[@]}" --propagation unchanged -- "$keeper" --socket "$share/keeper/socket" run -- "$@"
}

# launch_daemon [ARGUMENT...]: the same with a daemon.
launch_daemon() {
    launch "$dlockfs" --foreground --store "$store" -o new_root "$@" "$share/A"
}

waits_its_turn() {
    expect "$1" "dlockfs-keeper: waits for the end of the daemon before"
}

goes_on() {
    wait_until "$deadline" grep -q "dlockfs: $share/A goes on with version " "$dir/$1.out"
}

# went_on NAME NUMBER: how often daemons of this container have gone on is that, or more.
went_on() {
    [ "$(grep -c " goes on with version " "$dir/$1.out")" -ge "$2" ]
}

# daemon NAME: of that container.
daemon() {
    pgrep -P "$(inside "$1")" -x dlockfs | head -n 1
}

descriptors() {
    find "/proc/$(inside "$1")/fd" -mindepth 1 | wc -l
}

fixed_sees() {
    soon nsenter --mount --target "$(inside fixed)" -- "$@"
}

# counts: of this host, by the daemon.
counts() {
    grep -E '^(holders|waiters|fenced)=' "$share/A/.dlockfs/status" | paste -sd' '
}

are_counted() {
    [ "$(counts)" = "holders=$1 waiters=$2 fenced=0" ]
}

# all_is_held: nobody has lost anything, and nobody else has it; and the mount in other containers answers.
all_is_held() {
    expect_equal "who holds and waits" "holders=$locks waiters=$locks fenced=0" "$(counts)"
    fixed_sees test -e "$dir/fixed/.dlockfs/status"
    expect_status 1 soon flock -n "$dir/B/reports-of-the-day-00007" true
    expect_status 1 soon flock -n "$share/A/reports-of-the-day-$(printf '%05d' $((locks - 1)))" true
}


replaced() {
    local former opened time
    begin_volume
    start_dlockfs B
    start_keeper keeper-1
    launch_daemon --session-timeout 20s
    wait_until "$deadline" is_mounted "$share/A"
    wait_until "$deadline" grep -qx survives_kill=yes "$share/A/.dlockfs/status"
    start fixed "${pod[@]}" sh -c 'mount --bind "$1" "$2" && echo bound; exec sleep infinity' - "$share/A" "$dir/fixed"
    expect fixed bound
    start holders "${pod[@]}" "$python" "$tests/lib/many_locks.py" hold "$share/A" 0 "$locks"
    expect holders held
    start waiters "${pod[@]}" "$python" "$tests/lib/many_locks.py" wait "$share/A" 0 "$locks"
    wait_until "$deadline" are_counted "$locks" "$locks"
    all_is_held
    opened=$(descriptors keeper-1)

    # Upgrades: the next container waits already, and the one before is told to end.
    for ((time = 0; time < times; time++)); do
        former=$latest
        launch_daemon --session-timeout 20s
        waits_its_turn "$latest"
        kill -TERM "$(inside "$former")"
        goes_on "$latest"
        finish "$former" || fail "$former has ended with an error"
        all_is_held
    done
    # Containers that are killed, with all in them.
    for ((time = 0; time < times; time++)); do
        former=$latest
        launch_daemon --session-timeout 20s
        waits_its_turn "$latest"
        kill -KILL "$(inside "$former")"
        goes_on "$latest"
        finish "$former" 2>/dev/null || true
        all_is_held
    done
    expect_equal "descriptors that the keeper has open" "$opened" "$(descriptors keeper-1)"
    # The daemon alone, which its parent starts anew; one that is silent; and an upgrade in the same process.
    kill -KILL "$(daemon "$latest")"
    wait_until "$deadline" went_on "$latest" 2
    all_is_held
    kill -STOP "$(daemon "$latest")"
    wait_until "$deadline" went_on "$latest" 3
    said "$latest" "dlockfs-keeper: the daemon is silent, and is killed" || fail "it went on by itself"
    all_is_held
    kill -USR2 "$(inside "$latest")"
    wait_until "$deadline" went_on "$latest" 4
    all_is_held
    # The keeper: the next one is given all by the daemon's parent.
    kill -KILL "$(inside keeper-1)"
    finish keeper-1 2>/dev/null || true
    start_keeper keeper-2
    expect "$latest" "dlockfs-keeper: the keeper at $share/keeper/socket has all"
    former=$latest
    launch_daemon --session-timeout 20s
    waits_its_turn "$latest"
    kill -KILL "$(inside "$former")"
    goes_on "$latest"
    all_is_held

    # All that waited is granted, and nobody was lost.
    release holders
    wait_until "$deadline" are_counted 0 0
    finish waiters || fail "who waited has failed"
    ! grep -q Error "$dir/waiters.out" || fail "some who waited got an error"
    # A stop for good: nothing is kept.
    kill -INT "$(inside "$latest")"
    finish "$latest" || fail "the daemon ended with an error: $(tail -n 3 "$dir/$latest.out")"
    wait_until "$deadline" said keeper-2 "dlockfs-keeper: keeps 0 descriptors for the next daemon"
    not_mounted "$share/A"
    release fixed keeper-2
    stop_dlockfs B
}

# abandoned KEEPER|RUN: nobody goes on, or nobody who is ready, and the mount ends before others are granted.
abandoned() {
    local lost="dlockfs-keeper: no daemon went on in time: what was locked on this host is lost, and its mount has ended" former
    begin_volume
    start_dlockfs B --session-timeout 6s
    start_keeper keeper
    launch_daemon --session-timeout 6s
    wait_until "$deadline" is_mounted "$share/A"
    wait_until "$deadline" grep -qx survives_kill=yes "$share/A/.dlockfs/status"
    start holder "${pod[@]}" "$python" -u "$tests/lib/calls.py" "$share/A/$1" open ex watch fsync
    expect holder "ex ok"
    call next "$dir/B/$1" open ex hold
    wait_claims "$1" 2
    former=$latest
    [ "$1" = KEEPER ] || launch sleep infinity
    kill -KILL "$(inside "$former")"
    expect next "ex ok"
    wait_until "$deadline" grep -q '^fsync E' "$dir/holder.out"
    [ "$dir/holder.out" -ot "$dir/next.out" ] || fail "the holder learned of the loss after the next one was granted"
    if [ "$1" = KEEPER ]; then
        said keeper "$lost" || fail "the keeper did not end the mount"
    else
        expect "$latest" "${lost/went on/was ready}"
        expect_status 137 finish "$latest"
    fi
    # The next daemon begins anew.
    launch_daemon --session-timeout 6s
    wait_until "$deadline" grep -q " is ready; " "$dir/$latest.out"
    release next
    comes_free "$share/A/$1"
    kill -INT "$(inside "$latest")"
    finish "$latest" || fail "the daemon ended with an error: $(tail -n 3 "$dir/$latest.out")"
    release holder keeper
    stop_dlockfs B
}

start_zookeeper
scene keeper-alone abandoned KEEPER
scene run-alone abandoned RUN
replaced
scenes_end
