#!/bin/bash
# What writes to the kernel for the daemon waits there, unkillably, while a directory is locked whose owner waits for the
# daemon: neither the end of the daemon waits for it, nor does anything hang after that; and if it dies it is started anew.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

# helpers HOST NAME: processes of that name, "writer" or "guard", of the daemon of a host.
helpers() {
    local process
    for process in $(pgrep -x "dlockfs-$2" || true); do
        if grep -qzx "NOTIFIER_OF=$dir/$1" "/proc/$process/environ"; then
            echo "$process"
        fi
    done 2>/dev/null
}

# One that the test has stopped would never end.
continue_helpers() {
    local process
    for process in $(pgrep -x dlockfs-writer || true); do
        ! grep -qz "^NOTIFIER_OF=$dir/" "/proc/$process/environ" || kill -CONT "$process"
    done 2>/dev/null
}
cleanup_fn continue_helpers

# has_helper HOST NAME: the guard gets its name a moment after the writer.
has_helper() {
    [ -n "$(helpers "$@")" ]
}

no_helpers() {
    [ -z "$(helpers "$1" writer)$(helpers "$1" guard)" ]
}

writer_differs() {
    local writer
    writer=$(helpers "$1" writer)
    [ -n "$writer" ] && [ "$writer" != "$2" ]
}

# begin HOST [COMMAND [ARGUMENT...]]
begin() {
    NOTIFIER_OF=$dir/$1 "${2:-start_dlockfs}" "$1" -o idle=1s "${@:3}"
    wait_until "$deadline" writer_differs "$1" ""
}

process_is_gone() {
    ! process_find_start "$1"
}

is_listed() {
    local names
    names=$(ls -A "$1")
    grep -qx "$2" <<<"$names"
}

not_listed() {
    ! is_listed "$@"
}

# is_forgotten FILE: the kernel does not know the name any more. A plain stat(2) would not tell: the daemon, which is asked for the
# attributes, does not know a name either that the writer is still to be told of.
is_forgotten() {
    ! stat --cached=always "$1" >/dev/null
}

name_is_gone() {
    not_listed "$1" "$2" && is_forgotten "$1/$2"
}

has_state() {
    [[ $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status") == "$2" ]]
}

# naps PROCESS: how often it has waited for something.
naps() {
    sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$1/status"
}

has_napped() {
    [ "$(naps "$1")" -gt "$2" ]
}

waits_for_lock() {
    has_state "$1" D && grep -q 'fuse_reverse_inval_entry\|fuse_dev_write' "/proc/$1/stack"
}

# order HOST WRITER: the writer, which is stopped, is to let the kernel forget a name.
order() {
    kill -STOP "$2"
    wait_until "$deadline" has_state "$2" T
    flock -n "$dir/$1/idle" true
    wait_until "$deadline" not_listed "$dir/$1" idle # it has been told
}

# lock_directory HOST WRITER: a program makes a directory, for which it has locked the one above and waits for the daemon;
# for that lock waits the writer.
lock_directory() {
    start "maker-$1" mkdir "$dir/$1/made"
    wait_until "$deadline" asleep "maker-$1"
    kill -CONT "$2"
    wait_until "$deadline" waits_for_lock "$2"
}

# jam HOST: all wait for the daemon, which is stopped.
jam() {
    local writer
    writer=$(helpers "$1" writer)
    order "$1" "$writer"
    pause "$1"
    lock_directory "$1" "$writer"
}

# expect_dead HOST: everything ends though nobody goes on, and says so.
expect_dead() {
    # The daemon alone, so that nothing else ends by the signal.
    kill -KILL "$(pid "$1")"
    wait_until "$deadline" gone "$1"
    finish "$1" 2>/dev/null || true
    forget_host "$1"
    refused finish "maker-$1"
    wait_until "$deadline" no_helpers "$1"
    refused stat "$dir/$1/job" 2>"$dir/stat.err"
    grep -q 'not connected' "$dir/stat.err" || fail "unexpected: $(<"$dir/stat.err")"
}

ends() {
    local writer
    begin A
    jam A
    expect_dead A

    # Killed when it has read the request for which the directory is locked, as by an error in what it does with that.
    begin A
    writer=$(helpers A writer)
    order A "$writer"
    start tracer "$python" "$tests/lib/stop_at_request.py" "$(pid A)"
    expect tracer attached
    lock_directory A "$writer"
    expect tracer stopped
    expect_dead A
    finish tracer

    # A clean stop goes on answering until the writer is free.
    begin A
    jam A
    kill -TERM "$(pid A)"
    resume A
    finish maker-A
    wait_until "$deadline" gone A
    finish A
    forget_host A
    not_mounted "$dir/A"
    wait_until "$deadline" no_helpers A

    # But not for ever.
    begin A
    writer=$(helpers A writer)
    order A "$writer"
    send_signal A TERM
    wait_until "$deadline" gone A
    finish A
    forget_host A
    not_mounted "$dir/A"
    kill -CONT "$writer"
    wait_until "$deadline" no_helpers A
}

no_files() {
    [ -z "$(find "$dir/A" -type f)" ]
}

another_goes_on() {
    local writer former name
    # Another program goes on in place of the daemon meanwhile; the helpers of the former end, and are nobody's.
    : >"$dir/A.ini"
    begin A start_dlockfs --config "$dir/A.ini"
    jam A
    former=$(helpers A writer)
    kill -USR2 "$(pid A)"
    resume A
    finish maker-A
    wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
    wait_until "$deadline" writer_differs A "$former"
    wait_until "$deadline" name_is_gone "$dir/A" idle
    expect_equal "children of the daemon" "" "$(pgrep -P "$(pid A)" || true)"

    wait_until "$deadline" process_is_gone "$former"

    # Names that are used again before the writer has begun with them stay: the one that it was told of, and those that are to
    # follow; opened by what the kernel still remembers of them, or as new ones.
    writer=$(helpers A writer)
    order A "$writer"
    for name in second third; do
        flock -n "$dir/A/$name" true
        wait_until "$deadline" not_listed "$dir/A" "$name"
    done
    exec 8<>"$dir/A/second" 9>"$dir/A/idle"
    call third "$dir/A/third" excl hold
    expect third "excl ok"
    flock -n "$dir/A/next" true
    kill -CONT "$writer"
    wait_until "$deadline" is_forgotten "$dir/A/next" # not by a list, which would bring the names back
    for name in idle second third; do
        test -e "$dir/A/$name" || fail "$name: open, but not there"
    done
    exec 8>&- 9>&-
    release third

    # One that is used again when the writer has begun with it may be hidden then, for as long as nobody opens it so that it could be
    # created. The lock is not affected.
    writer=$(helpers A writer)
    wait_until "$deadline" name_is_gone "$dir/A" third
    start begun "$python" "$tests/lib/stop_at_request.py" "$writer" notice
    expect begun attached
    flock -n "$dir/A/begun" true
    expect begun stopped
    exec 9<>"$dir/A/begun"
    flock -n 9
    flock -n "$dir/A/next" true
    release begun
    wait_until "$deadline" is_forgotten "$dir/A/next"
    expect_status 1 flock -n "$dir/A/begun" true
    test -e "$dir/A/begun" || fail "begun: opened again, but not there"
    exec 9>&-

    # What was to be told of a directory when another program goes on, that one tells.
    writer=$(helpers A writer)
    kill -STOP "$writer"
    wait_until "$deadline" has_state "$writer" T
    test ! -e "$dir/A/configured"
    printf '%s\n' '[mount]' 'directories = configured' >"$dir/A.ini"
    send_signal A HUP
    wait_until "$deadline" grep -q 'read anew' "$dir/A.log"
    test ! -e "$dir/A/configured"
    kill -USR2 "$(pid A)"
    wait_until "$deadline" test -d "$dir/A/configured"
    kill -CONT "$writer"
    wait_until "$deadline" process_is_gone "$writer"

    # Whichever of the two dies, names are forgotten again with the next one that is idle, and not before there is one.
    wait_until "$deadline" no_files
    for name in idle second third begun; do
        wait_until "$deadline" name_is_gone "$dir/A" "$name"
    done
    for name in writer guard; do
        wait_until "$deadline" has_helper A "$name"
        kill -KILL "$(helpers A "$name")"
        wait_until "$deadline" no_helpers A
        touch "$dir/A/$name"
        wait_until "$deadline" name_is_gone "$dir/A" "$name"
        writer_differs A "" || fail "no writer"
    done
    stop_dlockfs A
    wait_until "$deadline" no_helpers A
}

# It has waited for all its children, of which the last one may end just now.
has_no_children() {
    ! pgrep -P "$(pid L)" >/dev/null
}

loads() {
    local name
    # While their program is loaded it may ask for files of the mount: the daemon, which has started it, answers.
    printf '#!/bin/sh\nexec env LD_LIBRARY_PATH="%s" "%s" "$@"\n' "$dir/L" "$dlockfs" >"$dir/wrapped"
    chmod +x "$dir/wrapped"
    dlockfs=$dir/wrapped begin L
    for name in writer guard; do
        wait_until "$deadline" has_helper L "$name"
        kill -KILL "$(helpers L "$name")"
        wait_until "$deadline" no_helpers L
        touch "$dir/L/$name"
        wait_until "$deadline" name_is_gone "$dir/L" "$name"
    done
    wait_until "$deadline" has_no_children
    stop_dlockfs L
}

is_kept() {
    local former guard before
    # Under a service manager the next daemon gives the answer.
    printf '%s\n' '[store "other"]' 'url = local:' >"$dir/B.ini"
    begin B start_kept --config "$dir/B.ini"
    jam B
    former=$(helpers B writer)
    crash B
    finish maker-B
    wait_until "$deadline" name_is_gone "$dir/B" idle
    wait_until "$deadline" process_is_gone "$former"

    # Or it cannot go on, and begins anew.
    rmdir "$dir/B/made"
    wait_until "$deadline" writer_differs B "$former"
    jam B
    : >"$dir/B.ini"
    send_signal B KILL
    refused finish maker-B
    wait_until "$deadline" grep -q '; beginning anew: ' "$dir/B.log"
    wait_until "$deadline" is_mounted "$dir/B"
    wait_until "$deadline" mount_settled B

    # When a daemon has ended well nobody believes to hold, though the service manager has the connection still open.
    call holder "$dir/B/held" excl await="$dir/stopped" fsync hold
    expect holder "excl ok"
    kill -STOP "$(pid manager-B)"
    kill -TERM "$(pid B)"
    wait_until "$deadline" gone B
    go stopped
    expect holder "fsync ENOTCONN"
    kill -CONT "$(pid manager-B)"
    finish manager-B
    release holder
    not_mounted "$dir/B"
    no_helpers B || fail "left: $(helpers B writer) $(helpers B guard)"

    # Nobody goes on: all ends when the service manager gives up what it keeps, and not before.
    begin B start_kept
    jam B
    guard=$(helpers B guard)
    pause manager-B
    send_signal B KILL
    wait_until "$deadline" gone B
    before=$(naps "$guard")
    wait_until "$deadline" has_napped "$guard" "$before"
    asleep maker-B || fail "given up, though another daemon could go on"
    release manager-B
    refused finish maker-B
    wait_until "$deadline" no_helpers B
    refused stat "$dir/B/job" 2>"$dir/stat.err"
    grep -q 'not connected' "$dir/stat.err" || fail "unexpected: $(<"$dir/stat.err")"
}

for part in ends another_goes_on loads is_kept; do
    scene "$part" "$part"
done
scenes_end
