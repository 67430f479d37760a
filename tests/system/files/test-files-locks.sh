#!/bin/bash
# In directories of style = file a lock belongs to the file: it goes with the file when that is renamed, and all hard links share it, on all
# hosts, for holders and waiters; and whoever makes a file anew by a name that was removed shares the lock with those who have the former
# one open. Case by case, at random on three hosts, over a restart, and as dlockctl shows such locks and breaks them.
#
# From the environment: STORE, zookeeper (unless given) or etcd; SEED; TURNS, how many of each of six processes.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"
requires command -v jq
requires command -v nq

locks() { # NAME WORD...
    start "$1" "$python" -u "$tests/system/files/files_locks.py" "${@:2}"
}

# ends_well NAME: a program that has found nothing wrong.
ends_well() {
    finish "$1" 120
    ! grep '^two\|^wrong' "$dir/$1.out" || violation "see above"
    ! grep '^odd' "$dir/$1.out" || fail "see above"
    grep -q '^done' "$dir/$1.out"
}

check_random() {
    local seed=${SEED:-$RANDOM}
    echo "seed $seed"
    rm -rf "$dir/state"
    mkdir "$dir/state"
    at A mkdir dir
    locks random random "$dir/state" "$seed" 2 "${TURNS:-40}" "$dir"/{A,B,C}/files
    ends_well random
    grep -q "^done.*'rename=ok'" "$dir/random.out" || fail "nothing was renamed"
}

refused_at() { # HOST FILE
    expect_status 1 at "$1" flock -n "$2" true
}

# The daemon of the holder's host is killed, and replaced: the next one knows the lock that the file has.
check_restart() {
    local host
    locks holder hold "$dir/A/files"
    expect holder held
    hold waiter "$dir/A/files/new"
    for host in crash restart_kept; do
        "$host" A
        refused_at A new
        refused_at B new
    done
    release holder
    expect waiter held
    refused_at B new
    # A file whose lock was not used before has it as well.
    at B mv new newer
    crash A
    refused_at A newer
    release waiter
    at B flock "$dir/A/files/newer" true
    at B rm newer
}

kinds_of() { # HOST NAME
    timeout "$deadline" "$dlockctl" --mount "$dir/$1" show --json "files/$2" | jq -r '.locks[0].claims[] | .kind + " " + .state' | paste -sd' '
}

# The queue is shown by each name that the file has, and what is broken there is the claim in it.
check_orders() {
    local host name
    for host in A B; do
        locks holder hold "$dir/A/files"
        expect holder held
        at A ln new second
        hold waiter "$dir/$host/files/second"
        wait_until "$deadline" has_claims C new 2
        for name in new second; do
            expect_equal "claims of $name" "file held flock held flock waiting" "$(kinds_of A "$name")"
            expect_equal "claims of $name" "file held flock held flock waiting" "$(kinds_of B "$name")"
        done
        timeout "$deadline" "$dlockctl" --mount "$dir/$host" break --yes --position 2 files/second | finds 'at position 2 away (held'
        expect waiter held
        wait_until "$deadline" has_claims C new 1
        release waiter holder
        at C rm new second
    done
}

has_job() {
    [ -n "$(at B find . -name ',*')" ]
}

# nq(1) locks a file that it then renames; the next job waits for that lock, by the name that the file has by then. The first job ends with
# the test, too.
check_nq() {
    # shellcheck disable=SC2016 # the job's shell
    local job='until [ -e "$0/go" ]; do sleep 0.05; [ -d "$0" ] || exit; done; echo one >>"$0/jobs"'
    NQDIR=$dir/A/files timeout "$deadline" nq sh -c "$job" "$dir" >"$dir/nq.out" 2>&1
    wait_until "$deadline" has_job # nq returns before its job is there
    # shellcheck disable=SC2016
    NQDIR=$dir/B/files timeout "$deadline" nq sh -c 'echo two >>"$0/jobs"' "$dir" >>"$dir/nq.out" 2>&1
    wait_until "$deadline" grep -q 'state=waiting .*kind=flock' "$dir/C/.dlockfs/queues"
    touch "$dir/go"
    wait_until "$deadline" test -e "$dir/jobs"
    NQDIR=$dir/B/files timeout "$deadline" fq -q >>"$dir/nq.out" # until no job is left
    expect_equal "jobs" "one two" "$(paste -sd' ' "$dir/jobs")"
    wait_until "$deadline" no_waiters
    find "$dir/C/files" -name ',*' -delete
}

no_waiters() {
    ! grep -q 'kind=flock' "$dir/C/.dlockfs/queues"
}

has_claims() { # HOST NAME COUNT: on the file
    [ "$(grep -c 'kind=flock' "$dir/$1/.dlockfs/locks/files/$2")" = "$3" ]
}

"start_${STORE:-zookeeper}"
files_config files
start_kept A --config "$dir/files.ini"
start_dlockfs B --config "$dir/files.ini"
start_dlockfs C --config "$dir/files.ini"
wait_until "$deadline" at A mkdir first 2>/dev/null # a session may have to prove itself first
at A rmdir first
locks check check "$dir"/{A,B}/files
ends_well check
check_restart
check_orders
check_nq
check_random
stop_kept A
