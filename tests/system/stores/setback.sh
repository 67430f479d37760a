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

# A fencing token of a lock, which is held for that long.
token_of() ( # HOST LOCK
    exec 9>>"$dir/$1/$2" && flock 9 && "$dlockctl" token 9
)

# All that are told now are above it, on each host.
tokens_above() { # TOKEN LOCK HOST...
    local last=$1 lock=$2 host next
    for host in "${@:3}"; do
        next=$(token_of "$host" "$lock") || fail "$host: no token"
        ((next > last)) || violation "a token went back: $next on $host, after $last"
        last=$next
    done
}
