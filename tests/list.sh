# shellcheck shell=bash
# shellcheck disable=SC2154 # what who sources it sets
# The system tests: tests/system/FOLDER/test-NAME.sh. A name is that of one test, whatever its folder.
# Sourced by run.sh, and by tests that run others.

# system_tests [FOLDER]: the names of all of them, or of those in that folder and below it, a line each.
system_tests() {
    find "$tests/system/${1:-}" -name 'test-*.sh' -printf '%f\n' | sed 's/^test-//; s/\.sh$//' | LC_ALL=C sort
}

# system_test NAME: the file of that test; fails if there is none.
system_test() {
    local file
    for file in "$tests"/system/{*,*/*}/"test-$1.sh"; do
        [ ! -e "$file" ] || break
    done
    [ -e "$file" ] && echo "$file"
}

# system_tests_index: each folder, and the tests in it, with the first sentence of what the test says of itself.
system_tests_index() {
    local folder file
    while read -r folder; do
        printf '%s/\n' "$folder"
        for file in "$tests/system/$folder"/test-*.sh; do
            [ ! -e "$file" ] || awk -v name="$(basename "$file" .sh)" '
                NR == 1 { next }
                !/^#/ || /^# shellcheck/ { exit }
                { text = text substr($0, 2) }
                END {
                    match(text, /\.( |$)/)
                    printf "    %-24s%s\n", substr(name, 6), RSTART ? substr(text, 1, RSTART - 1) : text
                }' "$file"
        done
    done < <(cd "$tests/system" && find . -mindepth 1 -type d -printf '%P\n' | LC_ALL=C sort)
}
