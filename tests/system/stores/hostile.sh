# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what functions.sh sets
# A host A whose servers change their answers (mangled_link.py), and a host B that the servers serve well; sourced after functions.sh.

# start_mangle PROGRAM SERVER: the link, whose address is $link_address. From mangle_begin to mangle_end it makes the change $what.
start_mangle() {
    local port
    port=$(free_port)
    mkdir "$dir/mangle"
    start mangle "$python" "$1" "$port" "$2" "$dir/mangle"
    wait_until "$deadline" test -e "$dir/mangle/ready"
    link_address=127.0.0.1:$port
}

lives() {
    alive A || fail "the daemon has died of: $what"
}

changed() { # TIMES
    lives
    [ "$(grep -cxF "$what" "$dir/mangle/done")" -ge "$1" ]
}

works() {
    lives
    timeout 4 flock "$dir/A/after" true
}

mangle_begin() {
    begin=$(now_ms)
    echo "$what" >"$dir/mangle/new"
    mv "$dir/mangle/new" "$dir/mangle/what"
    touch "$dir/mangle/break"
}

# mangle_end TIMES: once so many answers were changed; then the daemon is to work again.
mangle_end() {
    wait_until "$deadline" changed "$1"
    rm "$dir/mangle/what"
    wait_until "$deadline" works
    echo "$what: after $(($(now_ms) - begin)) ms"
}
