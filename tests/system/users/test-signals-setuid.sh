#!/bin/bash
# A user cannot have the daemon send signals that it could not send itself: a process takes a lock, and then executes a program of
# root with the setuid bit; or it leaves the descriptor to a child, closes its own, and executes that, or goes on. Neither on_revoke
# nor on_lost reaches it. A process of the user that has the file open gets both.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires test "$(id -u)" -eq 0

user=4001
victim=$dir/victim
install -m 4755 "$build/tests/system/setuid_victim" "$victim"
# as_user COMMAND...
as_user() {
    setpriv "--reuid=$user" "--regid=$user" --clear-groups -- "$@"
}
may_be_setuid() {
    ! findmnt -no OPTIONS -T "$dir" | finds -w nosuid
}
requires may_be_setuid
steer() {
    as_user "$python" "$(for_others "$tests/lib/steer.py")" "$@"
}

cat >"$dir/take.py" <<'PYTHON'
"""take.py FILE holds|passed PROGRAM...: takes the lock and executes the program; "passed": a child keeps the descriptor alone."""
import fcntl, os, signal, sys

file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o666)
os.set_inheritable(file, True)
fcntl.flock(file, fcntl.LOCK_EX)
if sys.argv[2] == "passed":
    if os.fork() == 0:
        signal.pause()
    os.close(file)
os.execv(sys.argv[3], sys.argv[3:])
PYTHON
cat >"$dir/say.py" <<'PYTHON'
import os, signal

signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"signalled\n"))
os.write(1, b"runs\n")
while True:
    signal.pause()
PYTHON
chmod 644 "$dir/take.py" "$dir/say.py"

start_dlockfs A -o on_lost=SIGUSR1 -o on_revoke=SIGUSR1
# The last one shows that what is sent has arrived.
for how in holds-victim passed-victim passed-own holds-own; do
    case $how in
        *-victim) program=("$victim") ;;
        *-own) program=("$python" "$dir/say.py") ;;
    esac
    start "$how" setpriv "--reuid=$user" "--regid=$user" --clear-groups -- "$python" "$dir/take.py" "$dir/A/$how" "${how%-*}" "${program[@]}"
    expect "$how" runs
done
! as_user kill -USR1 "$(pid holds-victim)" 2>/dev/null || fail "the user may signal it anyway"
for order in revoke break; do
    for how in holds-victim passed-victim passed-own holds-own; do
        expect_equal "$order of $how" ok "$(steer "$order" "$dir/A" "$how" 1)"
    done
done
signals() {
    [ "$(grep -c '^signalled' "$dir/$1.out")" -eq "$2" ]
}
wait_until "$deadline" signals holds-own 2
for how in holds-victim passed-victim passed-own; do
    signals "$how" 0 || fail "$how was signalled: $(grep "$(pid $how)" "$dir/A.log")"
done
wait_until "$prompt" grep -q "cannot send SIGUSR1 to process $(pid holds-victim), which is asked for the lock: Operation not permitted" "$dir/A.log"
release holds-victim passed-victim passed-own holds-own
