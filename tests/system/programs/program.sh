#!/bin/bash
# program.sh VERB PROGRAM FILES WORK HOST ARGUMENT...: a program that makes its lock in the folder FILES. For those of a shell;
# program_emacs.el, program_nfslock.pl and program_python.py have the same verbs.
#
#     count COUNTER TIMES     under the lock, increments the number in a file, so often
#     hold GO                 takes the lock, says "held", lets it go when the file GO exists, says "released"
#     try                     ends with 0 if the lock was free, 1 if somebody has it
#
# Each attempt is made by the program itself, and says at once if somebody has the lock; only cvs waits. A program that runs
# commands while it has its lock, as hooks, runs the increment. WORK is a folder that all hosts share; programs.sh makes in it
# what these programs need.
set -euo pipefail

locked=100 # the status of with_PROGRAM if somebody has the lock

exec {nothing}<> <(:)
pause() { # SECONDS
    read -r -t "$1" -u "$nothing" || true
}

increment() { # COUNTER
    local number=
    read -r number <"$1" || true
    pause 0.003
    echo $((number + 1)) >"$1"
}

hold() { # GO
    echo held
    until [ -e "$1" ]; do
        pause 0.02
    done
}

if [ "$1" = run ]; then # FUNCTION ARGUMENT...: from a hook
    "${@:2}"
    exit
fi
verb=$1 program=$2 files=$3 work=$4 host=$5
shift 5
said=$work/said-$$

# another_has STATUSES COMMAND...: one of them, as "3 4", says that somebody else has the lock. Any other but 0 is an error.
another_has() {
    local status=0 expected=$1
    shift
    "$@" >"$said" 2>&1 || status=$?
    [[ " $expected " != *" $status "* ]] || return "$locked"
    [ "$status" -eq 0 ] || error "status $status of $*: $(<"$said")"
}

error() {
    echo "$program: $*"
    exit 2
}

# hook COMMAND...: as a text for a shell. What the command says goes where this program writes to.
exec 7>&1
hook() {
    printf '%q ' bash "$0" run "$@"
    echo '>&7'
}

# with_PROGRAM COMMAND...: runs it under the lock; returns $locked if somebody else has that.

with_mkdir() {
    mkdir "$files/mkdir" 2>/dev/null || return "$locked"
    "$@"
    rmdir "$files/mkdir"
}

with_ln() {
    ln -s "$host.$$" "$files/ln" 2>/dev/null || return "$locked"
    [ "$(readlink "$files/ln")" = "$host.$$" ] || error "the link is another one: $(readlink "$files/ln")"
    "$@"
    rm "$files/ln"
}

with_bash() {
    (set -C && echo "$host.$$" >"$files/bash") 2>/dev/null || return "$locked"
    "$@"
    [ "$(<"$files/bash")" = "$host.$$" ] || error "another one's text: $(<"$files/bash")"
    rm "$files/bash"
}

with_dash() {
    # shellcheck disable=SC2016
    dash -c 'set -C; : >"$1"' - "$files/dash" 2>/dev/null || return "$locked"
    "$@"
    rm "$files/dash"
}

# liblockfile takes a lock for stale that goes between two of its looks at it. If it cannot remove the next one, which is another
# host's, it ends with 8 (L_RMSTALE).

with_lockfile-create() {
    another_has "4 8" lockfile-create -r 0 "$files/lockfile-create" || return
    lockfile-check "$files/lockfile-create"
    lockfile-touch --oneshot "$files/lockfile-create"
    "$@"
    lockfile-remove "$files/lockfile-create"
}

with_lockfile() {
    another_has 73 lockfile -r 0 "$files/lockfile" || return
    "$@"
    rm -f "$files/lockfile"
}

with_dotlockfile() {
    another_has "4 8" dotlockfile -l -r 0 "$files/dotlockfile" || return
    dotlockfile -t "$files/dotlockfile"
    "$@"
    dotlockfile -u "$files/dotlockfile"
}

# The lock is beside a file, which has to be there: with its host's end it may have gone.
with_mutt_dotlock() {
    : >>"$files/mutt"
    another_has 3 mutt_dotlock -r 0 "$files/mutt" || return
    "$@"
    : >>"$files/mutt"
    mutt_dotlock -u "$files/mutt"
}

# The filter of a file that is added runs while there is index.lock; that of other files as well, at times, but one of these runs is to
# do something.
with_git() {
    local file=$host.$BASHPID status=0
    : >"$work/tree/$file"
    : >"$said-once"
    ONCE=$said-once UNDER_LOCK=$(hook "$@") GIT_INDEX_FILE=$files/index \
        git --git-dir="$work/repository" --work-tree="$work/tree" add "$work/tree/$file" >"$said" 2>&1 || status=$?
    grep -q "index.lock': File exists" "$said" && return "$locked"
    [ "$status" -eq 0 ] || error "status $status: $(<"$said")"
}

# The hook runs while the module is locked. cvs waits for a lock, and says so.
with_cvs() {
    local status=0 checkout=$work/checkout-$$
    if [ ! -e "$checkout" ]; then
        mkdir -p "$checkout"
        (
            cd "$checkout"
            cvs -Q -d "$work/cvs-$host" checkout module
            echo >"module/$host.$$"
            cvs -Q -d "$work/cvs-$host" add "module/$host.$$"
        ) >"$said" 2>&1
    fi
    echo $RANDOM >>"$checkout/module/$host.$$"
    # shellcheck disable=SC2016
    UNDER_LOCK=$(hook "$@") LD_PRELOAD=$work/hasty.so sh -c 'cd "$1" && exec cvs -Q commit -m changed "$2"' - \
        "$checkout/module" "$host.$$" >"$said" 2>&1 &
    # Whoever only tries does not wait for the lock.
    while [ "$verb" = try ] && kill -0 $! 2>/dev/null; do
        if grep -q "waiting for .*'s lock" "$said"; then
            kill $!
            wait $! || true
            return "$locked"
        fi
        pause 0.02
    done
    wait $! || status=$?
    [ "$status" -eq 0 ] || error "status $status: $(<"$said")"
}

# The script runs while the file of the state is locked.
with_logrotate() {
    local name=$work/$host.$$
    echo changed >"$name.log"
    printf '%s {\n su root root\n rotate 1\n firstaction\n%s\nendscript\n}\n' "$name.log" "$(hook "$@")" >"$name.conf"
    another_has 3 env LD_PRELOAD="$work/in-place.so" logrotate -f -s "$files/logrotate" "$name.conf"
}

# attempt COMMAND...: sets `attempted` to the status of with_PROGRAM. What fails in that ends it, as it would not in a condition.
attempt() {
    set +e
    (
        set -e
        "with_$program" "$@"
    )
    attempted=$?
    set -e
    [ "$attempted" -eq 0 ] || [ "$attempted" -eq "$locked" ] || exit 2
}

case $verb in
    count)
        for ((round = 0; round < $2; round++)); do
            attempt increment "$1"
            while [ "$attempted" -ne 0 ]; do
                pause "0.0$((RANDOM % 30 + 10))"
                attempt increment "$1"
            done
        done
        ;;
    hold)
        attempt hold "$1"
        [ "$attempted" -eq 0 ] || error "somebody has the lock"
        echo released
        ;;
    try)
        attempt true
        [ "$attempted" -eq 0 ] || exit 1
        ;;
esac
