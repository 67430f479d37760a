# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# What the tests of lock files share; sourced after functions.sh, with `store` set to that of all hosts.

# files_config NAME [LINE...]: $dir/NAME.ini makes the directory files one of style = file, with more lines in its section.
files_config() {
    local name=$1
    shift
    printf '%s\n' '[mount]' 'directories = files' '[locks "files"]' 'style = file' 'try_limit = 4s' "$@" >"$dir/$name.ini"
}

# start_plain_hosts: A and B, with the directory files.
start_plain_hosts() {
    local host
    "start_${STORE:-zookeeper}"
    files_config files
    for host in A B; do
        start_dlockfs "$host" --config "$dir/files.ini" --session-timeout 60s
    done
    wait_until "$deadline" at A mkdir ready 2>/dev/null # a session may have to prove itself first
    at A rmdir ready
}

# start_two_hosts: A, whose daemons may be killed (kept.sh), and which has its server by `link`; and B. Calls in the directory files
# end only when the server has answered; names in the directory owned go with the process that made them.
start_two_hosts() {
    "start_${STORE:-zookeeper}"
    start_proxy link
    printf '%s\n' '[mount]' 'directories = files owned' '[locks "files"]' 'style = file' 'try_limit = 30s' \
        '[locks "owned"]' 'style = file' 'file_owner = process' >"$dir/files.ini"
    start_kept A --config "$dir/files.ini" --session-timeout 60s --store "$(proxied link)"
    start_dlockfs B --config "$dir/files.ini" --session-timeout 60s
}

# owns NAME FILE: a process of that name makes the file in the directory owned on A, and lives until it is released.
owns() {
    start "$1" "$python" -u "$tests/lib/one_call.py" excl "$dir/A/owned/$2" hold
    expect "$1" ok
}

# at HOST COMMAND...: runs it in that host's directory, with a bound.
at() {
    local host=$1
    shift
    (cd "$dir/$host/files" && timeout "$deadline" "$@")
}

# says_at HOST EXPECTED COMMAND...: what the command prints.
says_at() {
    local host=$1 expected=$2
    shift 2
    expect_equal "on $host: $*" "$expected" "$(at "$host" "$@")"
}

# fails_at HOST TEXT COMMAND...: the command fails, and says that.
fails_at() {
    local host=$1 text=$2 output status=0
    shift 2
    output=$(at "$host" "$@" 2>&1) || status=$?
    [ "$status" -ne 0 ] || fail "on $host: $* succeeds"
    [[ $output == *"$text"* ]] || fail "on $host: $*: expected \"$text\", found \"$output\""
}

# claim_at HOST NAME: makes the file, unless it is there: bash's noclobber.
claim_at() {
    # shellcheck disable=SC2016 # the inner shell's
    at "$1" bash -c 'set -C; echo $$ >"$0"' "$2" 2>/dev/null
}

no_file() {
    ! at "$1" test -e "$2"
}
