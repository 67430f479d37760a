#!/bin/bash
# How long it takes to tell all holders that their locks are lost: the servers stop, and from the turn of the loop in which the
# daemon sees that the lease has ended, the milliseconds until the last open file was fenced, with its poll(2) woken, and the last
# signal of on_lost sent.
#
#     tests/bench/fences.sh [NUMBER...]      (1000 10000)
#
# "of CPU" is what these took of the processor, and "in calls" the part of that in the system calls which wake and signal, below
# which nothing can come; a turn also has what came after that. PROCESSES=N: so many hold them all (10).
# ON_LOST=SIGUSR1: without it no signals. TIMEOUT=SECONDS of the session (4). ROUNDS=N for another number than 3.
# DLOCKFS_BUILD: the build folder of another version, for comparison; then FENCES is the folder with this one's programs.

# The trace is written by the daemon itself.
export DAEMON_USER=root
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
[ $# -gt 0 ] || set -- 1000 10000
programs=${FENCES:-$build/tests/bench}
[ -n "${FENCES:-}" ] || ninja -C "$build" tests/bench/fences tests/bench/fences_trace.so >"$dir/build.log"
start_etcd

printf '%8s %10s %8s %10s %10s %10s %10s %10s\n' locks processes signals "told ms" "of CPU" "in calls" "turn ms" daemon
for number; do
    for ((round = 0; round < ${ROUNDS:-3}; round++)); do
        export FENCES_TRACE=$dir/trace
        rm -f "$dir/trace"
        LD_PRELOAD=$programs/fences_trace.so start_dlockfs A --session-timeout "${TIMEOUT:-4}s" -o "on_lost=${ON_LOST:-eio}"
        start holders "$programs/fences" "$dir/A" "$number" "${PROCESSES:-10}"
        expect holders held
        pause etcd
        expect holders told
        resume etcd
        finish holders
        state=lives
        alive A || state=killed
        [ -e "$dir/trace" ] || echo "0 0 0 0 0 0" >"$dir/trace" # killed in that turn
        awk -v processes="${PROCESSES:-10}" -v number="$number" -v state=$state '{ signals += $2 }
            $3 > told { told = $3; cpu = $4; turn = $5; calls = $6 }
            END { printf "%8d %10d %8d %10.1f %10.1f %10.1f %10.1f %10s\n", number, processes, signals, told / 1000, cpu / 1000,
                calls / 1000, turn / 1000, state }' \
            "$dir/trace"
        if [ $state = lives ]; then
            stop_dlockfs A
        else
            finish A || true
            forget_host A
            umount -l "$dir/A"
        fi
    done
done
