#!/bin/bash
# Whoever makes many wait for record locks of one file, in processes or threads, does not keep others from their locks for long.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# Another lock, while that happens.
others_go_on() {
    while ! said "$1" "done"; do
        soon flock -n "$dir/L/other" true || fail "another lock is not free"
    done
}

crowd() { # KIND COUNT
    mkfifo "$dir/$1.in"
    # shellcheck disable=SC2016
    start "$1" sh -c 'exec "$@" <"$0"' "$dir/$1.in" "$python" "$tests/system/records/record_crowd.py" "$dir/L/$1" "$1" "$2"
    exec {input}>"$dir/$1.in"
    expect "$1" asked
    wait_until "$deadline" asked "$2"
    echo >&"$input"
    others_go_on "$1"
    exec {input}>&-
    wait_until "$deadline" gone "$1"
}

# asked COUNT: the daemon has got all calls, or all but that of the last one of a chain, which asks for nothing.
asked() {
    [ "$(sed -n 's/^waiters=//p' "$dir/L/.dlockfs/status")" -ge $(($1 - 1)) ]
}

start_dlockfs L
crowd chain 2500
crowd process 2000
