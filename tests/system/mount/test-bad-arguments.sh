#!/bin/bash
# A mistake on the command line gets one clear line and a non-zero status, in the foreground and in the background, and
# nothing is mounted.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

mkdir "$dir/M" "$dir/full"
touch "$dir/file" "$dir/full/file"

# rejected TEXT ARGUMENT...: one line that has the text.
rejected() {
    local text=$1 mode
    shift
    for mode in --foreground ""; do
        # shellcheck disable=SC2086
        refused timeout "$deadline" "$dlockfs" $mode "$@" >"$dir/out" 2>"$dir/err"
        expect_equal "output on stdout of: $*" "" "$(<"$dir/out")"
        [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line for '$*': $(<"$dir/err")"
        grep -qF -- "$text" "$dir/err" || fail "'$text' is not in: $(<"$dir/err")"
        expect_equal "mounts" "" "$(mounts_below "$dir")"
    done
}

rejected mount
rejected --colour --colour=red "$dir/M"
rejected "$dir/none/none" "$dir/none/none"
rejected "$dir/file" "$dir/file"
rejected consul://localhost --store consul://localhost "$dir/M"
rejected zookeeper: --store zookeeper:localhost "$dir/M"
rejected soon --session-timeout soon "$dir/M"
rejected 0 --session-timeout 0 "$dir/M"
rejected mode -o mode=wxyz "$dir/M"
rejected idle -o idle=whenever "$dir/M"
rejected "" local: "$dir/M" "$dir/M"
rejected none.ini --config "$dir/none.ini" "$dir/M"

# A name that no resolver knows may be known later: not an error of the arguments.
start_dlockfs A --store zookeeper://no-such-host.invalid:2181/locks
soon ls "$dir/A"
