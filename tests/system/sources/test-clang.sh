#!/bin/bash
# clang builds everything, without a warning, and the unit tests pass as they do with gcc: a build of its own.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v clang-14
folder=$build/clang
export CC=clang-14
[ -e "$folder/build.ninja" ] || meson setup "$folder" "$source_dir" -Dtests=enabled -Doptimization=0 -Ddebug=false --werror \
    >"$dir/build.log" 2>&1 || fail "$(tail -n 20 "$dir/build.log")"
ninja -C "$folder" >"$dir/build.log" 2>&1 || fail "$(tail -n 20 "$dir/build.log")"
meson test -C "$folder" --no-rebuild --timeout-multiplier 5 --suite unit --suite fuzz --print-errorlogs >"$dir/unit.out" 2>&1
