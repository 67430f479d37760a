# shellcheck shell=bash
# shellcheck disable=SC2154 # what who sources it sets
# The system tests: tests/system/FOLDER/test-NAME.sh. A name is that of one test, whatever its folder.
# Sourced by run.sh, and by tests that run others.

# system_tests: the names of all of them, a line each.
system_tests() {
    find "$tests/system" -name 'test-*.sh' -printf '%f\n' | sed 's/^test-//; s/\.sh$//' | LC_ALL=C sort
}

# system_test NAME: the file of that test; fails if there is none.
system_test() {
    local file
    for file in "$tests"/system/{*,*/*}/"test-$1.sh"; do
        [ ! -e "$file" ] || break
    done
    [ -e "$file" ] && echo "$file"
}
