# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Daemons under a service manager that keeps their descriptors (service_manager.py), so that they may be killed. Sourced after
# functions.sh.

requires grep -q 'HAVE_LIBSYSTEMD' "$build/compile_commands.json"

# launch_kept HOST [ARGUMENT...]: as launch_dlockfs.
launch_kept() {
    local host=$1
    shift
    mkdir -p "$dir/$host" 2>/dev/null || true # it may be a dead mount
    start "manager-$host" "$python" "$tests/lib/service_manager.py" "$dir" "$host" \
        "$dlockfs" --foreground --store "$store" -o new_root "$@" "$dir/$host"
    wait_until "$deadline" said "manager-$host" started
}

# start_kept HOST [ARGUMENT...]: as start_dlockfs.
start_kept() {
    launch_kept "$@"
    wait_until "$deadline" said "manager-$1" "keeps state"
    wait_until "$deadline" mount_settled "$1"
}

# gone_on HOST: how often a daemon has gone on in place of another.
gone_on() {
    grep -c ' goes on with version ' "$dir/$1.log" || true
}

gone_on_more() {
    [ "$(gone_on "$1")" -gt "$2" ]
}

# crash HOST: kill -9 of the daemon; the next one goes on.
crash() {
    local before
    before=$(gone_on "$1")
    send_signal "$1" KILL
    wait_until "$deadline" gone_on_more "$1" "$before"
}

# dies HOST: kill -9 of the daemon; no other one goes on before goes_on HOST.
dies() {
    settle "$1"
    gone_on_before=$(gone_on "$1")
    send_signal "manager-$1" STOP
    send_signal "$1" KILL
    wait_until "$deadline" gone "$1"
}

goes_on() {
    expect_equal "daemons of $1 that went on meanwhile" "$gone_on_before" "$(gone_on "$1")"
    send_signal "manager-$1" CONT
    wait_until "$deadline" gone_on_more "$1" "$gone_on_before"
}

# settle HOST: the daemon has handled so many requests that its death says nothing of what it went on with.
settle() {
    local number
    # Each name is a new one: the kernel remembers what is not there.
    for ((number = 0; number < 20; number++)); do
        settled_names=$((${settled_names:-0} + 1))
        [ ! -e "$dir/$1/not-there-$settled_names" ] || fail "not-there-$settled_names is there"
    done
}

# restart_kept HOST: as systemctl restart does.
restart_kept() {
    local before
    before=$(gone_on "$1")
    send_signal "manager-$1" USR1
    wait_until "$deadline" gone_on_more "$1" "$before"
}

# leave HOST: as somebody does who sends SIGUSR1.
leave() {
    local before
    before=$(gone_on "$1")
    send_signal "$1" USR1
    wait_until "$deadline" gone_on_more "$1" "$before"
}

# survives HOST WORD: what the daemon says of that.
survives() {
    grep -qx "survives_kill=$2" "$dir/$1/.dlockfs/status"
}

# kill_kept HOST: the daemon dies, and what was kept with it.
kill_kept() {
    release "manager-$1"
    send_signal "$1" KILL || true # that of the manager's end is cleared when the daemon becomes another user
    wait_until "$deadline" gone "$1"
}

# stop_kept HOST: a clean stop, after which nothing is kept or mounted.
stop_kept() {
    send_signal "manager-$1" TERM
    finish "manager-$1" || fail "the daemon of $1 ended with an error: $(tail -n 3 "$dir/$1.log")"
    rm -f "$dir/pids/$1"
    expect_equal "what is kept of $1" "left" "$(tail -n 1 "$dir/manager-$1.out")"
    not_mounted "$dir/$1" || fail "the mount of $1 is still there"
}
