#!/bin/bash
# Each module of the engine, of lock files, of the calls and of restarts has a unit test of its name, or stands in tests/unit/modules.txt with the
# tests that cover it; and no line there is stale.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../list.sh
. "$tests/list.sh"

# own_test MODULE: whether there is a unit test of its name: of src/engine/books/delay.c that is tests/unit/engine/test_delay.c.
own_test() {
    local folder=${1#src/}
    folder=${folder%%/*}
    [ -e "$source_dir/tests/unit/$folder/test_$(basename "$1")" ]
}

# is_test NAME: of one that tests/run.sh runs by this name.
is_test() {
    [ -e "$source_dir/tests/unit/${1%/*}/test_${1##*/}.c" ] || [ -e "$source_dir/tests/${1%%_*}/$1.c" ] || system_test "$1" >/dev/null
}

# faults LIST: what is wrong, a line each.
faults() {
    local module names name
    while read -r module; do
        own_test "$module" || grep -q "^$module " "$1" || echo "$module: no unit test has its name, and it is not in the list"
    done < <(cd "$source_dir" && find src/engine src/lockfile fs/ops fs/restart -name '*.c' 2>/dev/null | sort)
    while read -r module names; do
        [ -n "$names" ] || echo "$module: no test"
        [ -e "$source_dir/$module" ] || echo "$module: there is no such module"
        ! own_test "$module" || echo "$module: it has a test of its name, and need not be in the list"
        for name in $names; do
            is_test "$name" || echo "$module: there is no test $name"
        done
    done < <(grep -v '^#' "$1")
}

list=$source_dir/tests/unit/modules.txt
expect_equal "what is wrong in modules.txt" "" "$(faults "$list")"

# wrong LINE FAULT: with the line in the list, that is said. An empty line takes the first one out.
wrong() {
    if [ -n "$1" ]; then
        cat "$list" && echo "$1"
    else
        grep -v '^#' "$list" | tail -n +2
    fi >"$dir/list"
    expect_equal "what is said of '$1'" "$2" "$(faults "$dir/list")"
}
first=$(grep -v '^#' "$list" | head -n 1)
wrong "" "${first%% *}: no unit test has its name, and it is not in the list"
wrong "src/engine/none.c engine/engine" "src/engine/none.c: there is no such module"
wrong "src/engine/books/delay.c engine/engine" "src/engine/books/delay.c: it has a test of its name, and need not be in the list"
wrong "${first%% *} none" "${first%% *}: there is no test none"
