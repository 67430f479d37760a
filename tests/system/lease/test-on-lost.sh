#!/bin/bash
# What on_lost says is sent to the processes that hold when their lock is lost: once to each, before another host has
# the lock; to nobody who holds nothing any more or not yet, and to no process that only has the number of one.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

# pidfds HOST: how many the daemon has open.
pidfds() {
    find "/proc/$(pid "$1")/fd" -lname 'anon_inode:*pidfd*' | wc -l
}

has_pidfds() {
    [ "$(pidfds "$1")" -eq "$2" ]
}

# caught NAME: how often the program, and its children, got a signal that they catch.
caught() {
    grep -c '^caught' "$dir/$1.out" || true
}

# signalled NAME NUMBER
signalled() {
    [ "$(caught "$1")" -eq "$2" ]
}

# caught_once NAME SIGNAL: the program itself, once and no child of it.
caught_once() {
    wait_until "$deadline" grep -q '^caught' "$dir/$1.out"
    expect_equal "signals to $1" "$2 $(pid "$1")" "$(sed -n 's/^caught \(.*\) [0-9]*$/\1/p' "$dir/$1.out" | paste -sd,)"
}

# logged HOST TEXT: whether the daemon has written it, as a line but for its level.
logged() {
    grep -qE -- "^[a-z: ]*$2\$" "$dir/$1.log"
}

ready=stat # the step that says that those before it are done
# expect_ready NAME...
expect_ready() {
    local name
    for name; do
        wait_until "$deadline" said "$name" "$ready ok"
    done
}

#
# The session is lost
#

session_is_lost() {
    local name forking holders others
    start_proxy link
    cat >"$dir/A.ini" <<'ENDINI'
[mount]
directories = term kill eio
[locks]
on_lost = SIGHUP
[locks "term/*"]
on_lost = SIGTERM
[locks "kill/*"]
on_lost = SIGKILL
[locks "eio/*"]
on_lost = eio
ENDINI
    start_dlockfs A --config "$dir/A.ini" --session-timeout 20s --store "$(proxied link)"
    start_dlockfs B --session-timeout 20s -o directories="term kill eio"

    # Those who hold, in each way there is.
    start flock flock -F "$dir/A/term/flock" sleep infinity
    start forking flock "$dir/A/term/forking" sleep infinity
    start killed flock -F "$dir/A/kill/job" sleep infinity
    call ex "$dir/A/ex" catch=SIGHUP open ex "$ready" hold
    call excl "$dir/A/excl" catch=SIGHUP excl "$ready" hold
    call thread "$dir/A/thread" catch=SIGHUP open thread=ex "$ready" hold
    call open-thread "$dir/A/open-thread" catch=SIGHUP thread=excl "$ready" hold
    call shared "$dir/A/shared" catch=SIGHUP open sh open sh sh "$ready" hold
    call ranges "$dir/A/ranges" catch=SIGHUP open w:0-9 open w:20-29 r:5-6 "$ready" hold
    call ofd "$dir/A/ranges" catch=SIGHUP open ofd-w:100-109 open ofd-w:200-209 "$ready" hold
    call both "$dir/A/both" catch=SIGHUP open ex w:0-9 un "$ready" hold
    call parent "$dir/A/parent" catch=SIGHUP open ex spawn=fstat,hold "$ready" hold
    call part "$dir/A/part" catch=SIGHUP open w:0-9 open w:20-29 u:0-9 "$ready" hold
    # The one that the lock was last granted to through the open file; ranges of both.
    call taken "$dir/A/taken" catch=SIGHUP open sh spawn=sh,hold "$ready" await="$dir/never"
    call children "$dir/A/children" catch=SIGHUP open w:0-9 spawn=w:20-29,hold "$ready" hold
    holders="ex excl thread open-thread shared ranges ofd both parent part"

    # Those who hold nothing: released, refused, given up, waiting; and where on_lost is eio.
    call un "$dir/A/un" catch=SIGHUP open ex un "$ready" hold
    call closed "$dir/A/closed" catch=SIGHUP open ex close open "$ready" hold
    call u "$dir/A/u" catch=SIGHUP open w:0-9 open w:20-29 u:0-9 u:20- "$ready" hold
    call flushed "$dir/A/flushed" catch=SIGHUP open w:0-9 w:20-29 open-ro close "$ready" hold
    call ofd-u "$dir/A/ofd-u" catch=SIGHUP open ofd-w:0-9 ofd-u:0- "$ready" hold
    call reader "$dir/A/converted" catch=SIGHUP open sh "$ready" hold
    expect_ready reader
    call refused "$dir/A/converted" catch=SIGHUP open sh ex-nb "$ready" hold
    expect_ready refused
    call converting "$dir/A/converted" catch=SIGHUP open sh "$ready" ex hold
    expect_ready converting
    call eio "$dir/A/eio/job" catch=SIGHUP open ex "$ready" await="$dir/lost" fsync hold
    call inherited "$dir/A/inherited" catch=SIGHUP open spawn="await=$dir/go,ex,hold" "$ready" hold
    hold rival-of-waiter "$dir/B/waited"
    expect rival-of-waiter held
    call waiter "$dir/A/waited" catch=SIGHUP open ex hold
    wait_claims waited 2
    call range-waiter "$dir/A/ranges" catch=SIGHUP open w:0-0 hold
    others="un closed u flushed ofd-u refused converting eio waiter range-waiter"

    # shellcheck disable=SC2086
    expect_ready $holders taken children reader ${others% waiter*} inherited
    go go
    expect inherited "child ex ok"
    expect taken "child sh ok"
    expect children "child w:20-29 ok"
    expect_equal "a refused conversion" "ex-nb EAGAIN" "$(sed -n '/^ex-nb/p' "$dir/refused.out")"
    wait_claims term/flock 1
    wait_claims term/forking 1
    wait_claims kill/job 1
    wait_until "$deadline" asleep range-waiter
    wait_until "$deadline" asleep converting
    # Each process once, however much it holds: 3 by flock(1), those above, the reader, children and who inherited.
    has_pidfds A $((3 + $(wc -w <<<"$holders") + 1 + 1 + 2 + 1)) || fail "$(pidfds A) pidfds"

    keep timed-rival "$dir/B/ex" flock
    start timed-flock "$python" -u "$tests/lib/lease.py" hold "$dir/B/term/flock" flock
    wait_claims ex 2
    wait_claims term/flock 2
    cut_link link
    for name in timed-rival timed-flock; do
        wait_until "$deadline" granted "$name"
        # By now every signal has been sent.
        [ "$(time_of ex caught)" -le "$(time_of "$name" granted)" ] || violation "$name got its lock before the signal was sent"
        gone flock || fail "flock -F lives on while $name has its lock"
    done
    expect_status 143 finish flock
    forking=$(pid forking)
    expect_status 143 finish forking 2>"$dir/forking.err"
    kill -- "-$forking" # the command, which outlives its flock
    expect_status 137 finish killed 2>"$dir/killed.err"
    join_link link

    for name in $holders reader; do
        caught_once "$name" SIGHUP
    done
    for name in taken inherited; do # the child alone
        wait_until "$deadline" grep -q '^caught' "$dir/$name.out"
        expect_equal "signals to $name" 1 "$(caught "$name")"
        grep '^caught' "$dir/$name.out" | grep -vqF " $(pid "$name") " || fail "$name: not the child got the signal"
    done
    wait_until "$deadline" signalled children 2
    expect_equal "signals to parent and child" 2 "$(sed -n 's/^caught SIGHUP \([0-9]*\) .*/\1/p' "$dir/children.out" | sort -u | wc -l)"
    go lost
    expect eio "fsync EIO"
    wait_claims waited 2 # the waiter has queued again
    for name in $others; do
        alive "$name" || fail "$name has ended"
        expect_equal "signals to $name" 0 "$(caught "$name")"
    done
    logged A "ex: sent SIGHUP to process $(pid ex), which has lost the lock" || fail "no message of ex"
    logged A "kill/job: sent SIGKILL to process [0-9]+, which has lost the lock" || fail "no message of kill/job"
    expect_equal "messages of signals" $((3 + $(wc -w <<<"$holders") + 1 + 1 + 2 + 1)) "$(grep -c ': sent SIG' "$dir/A.log")"
    if grep -E 'cannot send|will get no' "$dir/A.log"; then
        fail "a signal was not sent"
    fi
    # Waiters hold now; the others are forgotten.
    expect range-waiter "w:0-0 ok"
    expect converting "ex ok"
    has_pidfds A 2 || fail "$(pidfds A) pidfds after the loss"
    # shellcheck disable=SC2086
    release $holders $others reader taken children inherited rival-of-waiter timed-rival timed-flock
    wait_until "$deadline" has_pidfds A 0
}

start_zookeeper
scene session session_is_lost

#
# A claim is deleted by hand: each loss counts, and each lock for itself
#

start_dlockfs C --session-timeout 10s -o on_lost=SIGUSR1

# take_away LOCK NUMBER: deletes the claim in that place, which the daemon notices with its next heartbeat.
take_away() {
    zookeeper delete "/dlockfs/$1/$(zookeeper claims "/dlockfs/$1" | sed -n "$2p")"
}

call again "$dir/C/again" catch=SIGUSR1 open ex "$ready" await="$dir/again1" ex-nb open ex "$ready" await="$dir/again2" fsync hold
wait_claims again 1
take_away again 1
wait_until "$deadline" signalled again 1
go again1
wait_claims again 1 # taken anew, through another descriptor
take_away again 1
wait_until "$deadline" signalled again 2
go again2
expect again "fsync EIO"

# One of two shared locks, then the other; and a lock of another name stays.
call pair "$dir/C/pair" catch=SIGUSR1 open sh open sh file="$dir/C/other" open ex "$ready" hold
wait_claims pair 2
take_away pair 1
wait_until "$deadline" signalled pair 1
take_away pair 1
wait_until "$deadline" signalled pair 2
# Record locks: all of the process, through whichever descriptors.
call spans "$dir/C/spans" catch=SIGUSR1 open w:0-9 open w:100-109 "$ready" hold
wait_claims spans 2
take_away spans 1
wait_until "$deadline" signalled spans 1
take_away spans 1 # it has lost everything already
sleep 3 # two heartbeats, in which no second signal may come
signalled spans 1 || fail "$(caught spans) signals for one loss"
signalled pair 2 || fail "$(caught pair) signals for two losses"
signalled again 2 || fail "$(caught again) signals for two losses"
has_pidfds C 1 || fail "$(pidfds C) pidfds, where 1 lock is left"
release again pair spans

#
# Who has the number of a process that held gets nothing
#

# A process takes the lock and ends, its child has the descriptor; then another process gets its number, by clone3(2). In a
# container /proc/sys/kernel/ns_last_pid, the other way to that, may not be written.
cat >"$dir/recycle.py" <<'PYTHON'
import ctypes, fcntl, os, signal, struct, sys
CLONE3 = 435
taker = os.fork()
if taker == 0:
    fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
os.waitpid(taker, 0)
libc = ctypes.CDLL(None, use_errno=True)
number = ctypes.c_int(taker)
arguments = struct.pack("=11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1, 0)
child = libc.syscall(CLONE3, arguments, len(arguments))
if child < 0:
    sys.exit(f"clone3 with the number {taker}: {os.strerror(ctypes.get_errno())}")
if child == 0:
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"signalled\n"))
    os.write(1, b"ready\n")
while True:
    signal.pause()
PYTHON
start recycled "$python" -u "$dir/recycle.py" "$dir/C/recycled"
expect recycled ready
wait_claims recycled 1
take_away recycled 1
wait_until "$deadline" logged C "recycled: claim .* was taken away, its holder has lost the lock: process [0-9]+ \\(.+\\)"
# Another number of the same lock: its holder gets the signal, so all were sent that are to be.
call after "$dir/C/recycled" catch=SIGUSR1 open ex hold
wait_claims recycled 1
take_away recycled 1
wait_until "$deadline" signalled after 1
if said recycled signalled; then
    fail "a process that never held got the signal"
fi
if grep -E 'recycled: (sent|cannot)' "$dir/C.log" | grep -v "process $(pid after),"; then
    fail "a signal for a process that has ended"
fi
release recycled after

#
# What cannot be sent is told, and the lock is granted all the same
#

# as_daemon COMMAND...: as the user of the daemon of C, which may be another one than root.
as_daemon() {
    local owner
    owner=$(stat -c '%u %g' "/proc/$(pid C)")
    setpriv --reuid="${owner% *}" --regid="${owner#* }" --clear-groups "$@"
}

# Descriptors: as many as there may be, unless the administrator says otherwise while it runs.
expect_equal "limits of descriptors" 1 "$(awk '/^Max open files/ { print $4 == $5 }' "/proc/$(pid C)/limits")"
first_free=0
while [ -e "/proc/$(pid C)/fd/$first_free" ]; do
    first_free=$((first_free + 1))
done
as_daemon prlimit --pid "$(pid C)" --nofile="$first_free:"
call full "$dir/C/full" catch=SIGUSR1 open ex "$ready" fsync hold
expect full "fsync ok"
logged C "full: process $(pid full) will get no SIGUSR1: Too many open files" ||
    fail "not told: $(tail -n 1 "$dir/C.log")"
wait_claims full 1
take_away full 1
wait_until "$deadline" logged C "full: claim .* was taken away, its holder has lost the lock: process [0-9]+"
as_daemon prlimit --pid "$(pid C)" --nofile=1024:
call after "$dir/C/after" catch=SIGUSR1 open ex hold
wait_claims after 1
take_away after 1
wait_until "$deadline" signalled after 1
expect_equal "signals to who could not be noted" 0 "$(caught full)"
release full after

# A daemon that may not signal processes of other users.
real=$dlockfs
printf '#!/bin/sh\nexec setpriv --inh-caps=-kill --bounding-set=-kill "%s" "$@"\n' "$real" >"$dir/unprivileged"
# A daemon in a pid namespace of its own does not see who calls.
printf '#!/bin/sh\nexec unshare --pid --fork --kill-child=KILL "%s" "$@"\n' "$real" >"$dir/apart"
chmod +x "$dir/unprivileged" "$dir/apart"
dlockfs=$dir/unprivileged
start_dlockfs D --session-timeout 10s -o on_lost=SIGTERM
start stranger setpriv --reuid=65534 --clear-groups "$python" -u "$(for_others "$tests/lib/calls.py")" "$dir/D/stranger" open sh open sh "$ready" hold
wait_claims stranger 2
take_away stranger 1
wait_until "$deadline" logged D \
    "stranger: cannot send SIGTERM to process $(pid stranger), which has lost the lock: Operation not permitted"
alive stranger || fail "it has ended"
release stranger

dlockfs=$dir/apart
mkdir "$dir/E"
start E-daemon "$dlockfs" -f --store "$store" --session-timeout 10s -o on_lost=SIGTERM "$dir/E"
cleanup_fn umount -l "$dir/E"
wait_until "$deadline" is_mounted "$dir/E"
dlockfs=$real
call unseen "$dir/E/unseen" open sh sh ex "$ready" hold
expect_ready unseen
wait_claims unseen 1
take_away unseen 1
wait_until "$deadline" grep -q 'unseen: claim .* its holder has lost the lock' "$dir/E-daemon.out"
alive unseen || fail "it has ended"
expect_equal "warnings" "unseen: a process of another pid namespace will get no SIGTERM" \
    "$(sed -n 's/.*\(unseen: a process.*\)/\1/p' "$dir/E-daemon.out")"
release unseen

# A daemon that is stopped gives its locks back.
start_dlockfs F --session-timeout 10s -o on_lost=SIGTERM
call stopped "$dir/F/stopped" catch=SIGTERM open ex hold
expect stopped "ex ok"
stop_dlockfs F
wait_until "$deadline" signalled stopped 1
release stopped
scenes_end
