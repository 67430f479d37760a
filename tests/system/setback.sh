# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# What the tests of servers that were set back have in common: what a host says of itself; sourced after functions.sh.

status() { # HOST KEY
    sed -n "s/^$2=//p" "$dir/$1/.dlockfs/status"
}

metric() { # HOST NAME
    sed -n "s/^$2 //p" "$dir/$1/.dlockfs/metrics"
}

connected() {
    [ "$(status "$1" session)" = connected ]
}
