#!/bin/bash
# How many of dlockfs's own functions, in how many files, a call enters in the daemon: open(2) of a new name, the first flock(2), its
# release, a flock that has to wait for another one on the same host, and the hand-over to it. Each number includes the functions of the
# first line, by which the end of a call is seen.
#
#     tests/bench/walk.sh [list]
#
# On a store of the daemon's own (local:), by valgrind, in a build without optimization, where no function vanishes into another one.
# list: the functions of each call, too.

export DAEMON_USER=root # whose processes callgrind_control(1) finds
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
requires command -v valgrind callgrind_control

{
    meson setup "$dir/build" "$source_dir" -Doptimization=0 -Ddebug=true
    ninja -C "$dir/build" dlockfs
} >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
printf '%s\n' '#!/bin/sh' \
    "exec valgrind -q --tool=callgrind --callgrind-out-file='$dir/callgrind' '$dir/build/dlockfs' \"\$@\"" >"$dir/daemon.sh"
chmod 755 "$dir/daemon.sh"
dlockfs=$dir/daemon.sh
start_dlockfs A
"$python" "$tests/bench/walk.py" "$(pid A)" "$dir/callgrind" "$source_dir" "$dir/A" "$@"
