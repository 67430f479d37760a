#!/bin/bash
# What one user may have: a user who floods the mount gets errors, and neither the store nor other users notice; what is
# counted is exact, however a call, an open file or a name ends.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v setpriv

flooder=12345 other=23456

as() { # USER-ID COMMAND...
    setpriv "--reuid=$1" "--regid=$1" --clear-groups -- "${@:2}"
}

# start_as USER-ID NAME FILE STEP...: see lib/calls.py.
start_as() {
    start "$2" setpriv "--reuid=$1" "--regid=$1" --clear-groups -- "$python" -u "$(for_others "$tests/lib/calls.py")" "${@:3}" hold
}

# calls USER-ID FILE STEP...: what they print, on one line.
calls() {
    as "$1" timeout "$deadline" "$python" -u "$(for_others "$tests/lib/calls.py")" "${@:2}" | paste -sd' '
}

# has HOST USER-ID [COUNTS]: whether that is what the user has; without: nothing but names.
has() {
    local line
    line=$(grep "^uid=$2 " "$dir/$1/.dlockfs/users" || true)
    if [ $# -gt 2 ]; then
        [[ "$line " == *" $3 "* ]]
    else
        [[ -z $line || $line == "uid=$2 waiters=0 files=0 "* ]]
    fi
}

refusals() { # HOST LIMIT
    sed -n "s/^dlockfs_limit_refusals_total{limit=\"$2\"} //p" "$dir/$1/.dlockfs/metrics"
}

requires as "$flooder" true
start_zookeeper
printf '%s\n' '[mount]' 'user_waiters = 3' 'user_files = 8' 'user_names = 12' 'user_ranges = 5' 'directories = files' \
    '[locks "files"]' 'style = file' >"$dir/limits.ini"
start_dlockfs A --config "$dir/limits.ini"
start_dlockfs B --config "$dir/limits.ini" -o handoff=8

(umask 0 && touch "$dir/A/job" "$dir/A/kind" "$dir/B/hand")

# A flood of calls, while root holds the lock: so many wait, the rest is refused at once, and others wait their turn.
hold holder "$dir/A/job"
expect holder held
start flood setpriv "--reuid=$flooder" "--regid=$flooder" --clear-groups -- "$python" "$(for_others "$tests/system/users/flood.py")" "$dir/A/job" 40 3
wait_until "$deadline" grep -qx 'ENFILE 32 ENOLCK 5' "$dir/flood.out"
wait_claims job 4
has A "$flooder" "waiters=3 files=8 names=0"
expect_equal "refused opens" 32 "$(refusals A user_files)"
expect_equal "refused calls" 5 "$(refusals A user_waiters)"
grep -q "warning: user $flooder has reached user_files = 8: its calls fail with ENFILE" "$dir/A.log"
grep -q "warning: user $flooder has reached user_waiters = 3: its calls fail with ENOLCK" "$dir/A.log"
expect_equal "messages" 2 "$(grep -c 'has reached' "$dir/A.log")"
for user in "$other" 0; do
    expect_equal "user $user" "open ok ex-nb ok file ok excl-nb ok w-nb:0-9 ok" \
        "$(calls "$user" "$dir/A/free-$user" open ex-nb "file=$dir/A/own-$user" excl-nb w-nb:0-9)"
done
expect_equal "the user's reading" ENFILE "$(as "$flooder" "$python" -c 'import errno, os, sys
for path in sys.argv[1:]:
    try:
        os.listdir(path) if path.endswith("/") else open(path)
        print("ok")
    except OSError as error:
        print(errno.errorcode[error.errno])' "$dir/A/" "$dir/A/.dlockfs/" "$dir/A/.dlockfs/status" "$dir/A/.dlockfs/queues" | sort -u)"
start_as "$other" turn "$dir/A/job" open ex
wait_claims job 5
release flood
wait_until "$deadline" has A "$flooder"
release holder
expect turn "ex ok"
release turn
wait_claims job 0

# What is kept while something is open counts by its size: a listing, and a text.
mkdir "$dir/A/long"
(cd "$dir/A/long" && touch "$(printf '%0200d' 0)"{10..99})
# sizes USER-ID: what opening and reading these says, each kept open.
sizes() {
    as "$1" "$python" -c 'import errno, os, sys
for path in sys.argv[1:]:
    try:
        kept = os.open(path, os.O_RDONLY)
        os.read(kept, 1) if not os.path.isdir(path) else os.listdir(kept)
        print("ok")
    except OSError as error:
        print(errno.errorcode[error.errno])' "$dir/A/long" "$dir/A/.dlockfs/metrics" "$dir/A/.dlockfs/"{metrics,metrics,metrics,metrics} |
        paste -sd' '
}
metrics_bytes=$(wc -c <"$dir/A/.dlockfs/metrics")
[ "$metrics_bytes" -ge 4096 ] || fail "the metrics are too short for this: $metrics_bytes bytes"
[[ "$(sizes "$other")" == "ok "*" ENFILE" ]] || fail "what is kept does not count by its size: $(sizes "$other")"
expect_equal "for root" "ok ok ok ok ok ok" "$(sizes 0)"
(cd "$dir/A/long" && touch "$(printf '%0200d' 1)"{100..199})
expect_equal "a long listing" ENFILE "$(sizes "$other" | cut -d' ' -f1)"
wait_until "$deadline" has A "$other"
rm -r "$dir/A/long"

# Every kind of lock counts, while it waits and no longer: granted, interrupted, broken or killed.
for kind in "open ex" "excl" "open w:0-9"; do
    call=${kind##* }
    refusal=${call%:*}
    hold holder "$dir/A/kind"
    expect holder held
    for number in 1 2; do
        # shellcheck disable=SC2086
        start_as "$flooder" "waiter$number" "$dir/A/kind" $kind
        wait_claims kind $((number + 1))
    done
    # shellcheck disable=SC2086
    start_as "$flooder" interrupted "$dir/A/kind" catch=SIGUSR1 $kind
    wait_claims kind 4
    # shellcheck disable=SC2086
    [[ "$(calls "$flooder" "$dir/A/kind" $kind)" == *"$call ENOLCK" ]] || fail "$refusal: more waiters than there may be"
    send_signal interrupted USR1
    expect interrupted "$call EINTR"
    wait_claims kind 3
    has A "$flooder" "waiters=2"
    # shellcheck disable=SC2086
    start_as "$flooder" waiter3 "$dir/A/kind" $kind
    wait_claims kind 4
    has A "$flooder" "waiters=3"
    expect_equal "breaking a wait" ok "$("$python" "$(for_others "$tests/lib/steer.py")" break "$dir/A" kind 2)"
    wait_claims kind 4
    has A "$flooder" "waiters=3"
    release waiter2
    wait_until "$deadline" has A "$flooder" "waiters=2"
    release holder
    wait_until "$deadline" grep -q "^$call ok" "$dir/waiter1.out" "$dir/waiter3.out"
    wait_until "$deadline" has A "$flooder" "waiters=1"
    release waiter1 waiter3 interrupted
    wait_until "$deadline" has A "$flooder"
    wait_claims kind 0
done

# Byte ranges, through whatever files the user has opened, also where each is a process of its own. To release parts may
# leave more.
start_as "$flooder" ranges "$dir/A/kind" open ofd-w-nb:0-0 ofd-w-nb:2-2 ofd-w-nb:4-9 "file=$dir/A/job" open ofd-w-nb:0-0 ofd-w-nb:2-2 \
    ofd-w-nb:4-4 w-nb:4-4 swap ofd-u-nb:6-6 ofd-w-nb:20-20 ofd-u-nb:0-1 ofd-u-nb:2-5 ofd-w-nb:20-20
expect ranges "ofd-u-nb:2-5 ok"
expect ranges "ofd-w-nb:20-20 ok"
expect_equal "ranges of the user" "open ok,ofd-w-nb:0-0 ok,ofd-w-nb:2-2 ok,ofd-w-nb:4-9 ok,file ok,open ok,ofd-w-nb:0-0 ok,\
ofd-w-nb:2-2 ok,ofd-w-nb:4-4 ENOLCK,w-nb:4-4 ENOLCK,swap ok,ofd-u-nb:6-6 ok,ofd-w-nb:20-20 ENOLCK,ofd-u-nb:0-1 ok,\
ofd-u-nb:2-5 ok,ofd-w-nb:20-20 ok" "$(grep -v hold "$dir/ranges.out" | paste -sd,)"
has A "$flooder" "ranges=4"
expect_equal "refused ranges" 3 "$(refusals A user_ranges)"
grep -q "warning: user $flooder has reached user_ranges = 5: its calls fail with ENOLCK" "$dir/A.log"
expect_equal "ranges of another user" "open ok w-nb:30-30 ok" "$(calls "$other" "$dir/A/ranges-$other" open w-nb:30-30)"
release ranges
wait_until "$deadline" has A "$flooder"

# Those who follow on one claim, which the store never hears of.
start_as "$flooder" first "$dir/B/hand" open ex
expect first "ex ok"
for number in 1 2 3; do
    start_as "$flooder" "follower$number" "$dir/B/hand" open ex
    wait_until "$deadline" has B "$flooder" "waiters=$number"
done
expect_equal "a fourth one" "open ok ex ENOLCK" "$(calls "$flooder" "$dir/B/hand" open ex)"
# A reload with other limits takes nothing away from those who wait.
reload() { # WAITERS
    sed -i "s/^user_waiters = .*/user_waiters = $1/" "$dir/limits.ini"
    send_signal B HUP
    reloads=$((reloads + 1))
    wait_until "$deadline" reloaded
}
reloaded() {
    [ "$(grep -c 'read anew' "$dir/B.log")" -eq "$reloads" ]
}
reloads=0
reload 4
start_as "$flooder" follower4 "$dir/B/hand" open ex
wait_until "$deadline" has B "$flooder" "waiters=4"
reload 1
has B "$flooder" "waiters=4"
expect_equal "with a lower limit" "open ok ex ENOLCK" "$(calls "$flooder" "$dir/B/hand" open ex)"
release follower4
wait_until "$deadline" has B "$flooder" "waiters=3"
release first
wait_until "$deadline" has B "$flooder" "waiters=2"
release follower1 follower2 follower3
wait_until "$deadline" has B "$flooder"

# Names: those that are idle make room, the others do not.
expect_equal "one name after the other" "100 names" "$(as "$flooder" "$python" -c 'import fcntl, os, sys, time
for number in range(100):
    end = time.monotonic() + 80
    while True: # the kernel has to forget some, which takes it a moment
        try:
            with open(f"{sys.argv[1]}/name{number}", "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() > end:
                sys.exit("no room is made")
            time.sleep(0.05)
print("100 names")' "$dir/A")"
made=0
while as "$flooder" mkdir "$dir/A/directory$made" 2>"$dir/err"; do
    made=$((made + 1))
    [ "$made" -le 12 ] || fail "made more names than there may be"
done
grep -q 'Disk quota exceeded' "$dir/err" || fail "$(<"$dir/err")"
full() {
    as "$flooder" mkdir "$dir/A/directory$made" 2>"$dir/err" && made=$((made + 1))
    has A "$flooder" "names=12" && [ "$made" -eq 12 ]
}
wait_until "$deadline" full
expect_equal "a file" "open EDQUOT" "$(calls "$flooder" "$dir/A/one-more" open)"
expect_equal "an exclusive one" "excl EDQUOT" "$(calls "$flooder" "$dir/A/one-more" excl)"
as "$flooder" flock -n "$dir/A/free-$other" true # is there already
as "$other" mkdir "$dir/A/directory-of-another"
as "$flooder" rmdir "$dir/A/directory0"
wait_until "$deadline" as "$flooder" mkdir "$dir/A/directory0"
as "$flooder" rmdir "$dir/A/directory"[0-9]*
gone_user() {
    ! grep -q "^uid=$flooder " "$dir/A/.dlockfs/users"
}
wait_until "$deadline" gone_user

# What somebody else has open makes no room by itself. It does when it is removed, open or not; the lock stays.
as "$flooder" touch "$dir/A/pinned"{1..8}
steps=(open-ro ex-nb)
for number in {2..8}; do
    steps+=("file=$dir/A/pinned$number" open-ro)
done
all_open() {
    [ "$(grep -c '^open-ro ok' "$dir/pin.out")" -eq 8 ]
}
start_as "$other" pin "$dir/A/pinned1" "${steps[@]}"
wait_until "$deadline" all_open
as "$flooder" mkdir "$dir/A/directory"{1..4}
has A "$flooder" "names=12"
expect_equal "one more" "open EDQUOT" "$(calls "$flooder" "$dir/A/one-more" open)"
as "$flooder" rm "$dir/A/pinned1"
has A "$flooder" "names=11"
expect_status 1 as "$flooder" flock -n "$dir/A/pinned1" true
as "$flooder" rm "$dir/A/pinned"{1..8}
as "$flooder" rmdir "$dir/A/directory"{1..4}
wait_until "$deadline" gone_user
release pin
comes_free "$dir/A/pinned1"

# A name counts by its path and by its text, which is on the account of whoever has made it longer. A file that is unlinked and
# not open takes nothing, also while somebody has it by O_PATH.
long=$(printf '%0200d' 0)
as "$flooder" mkdir "$dir/A/$long" "$dir/A/$long/$long" # one and two
has A "$flooder" "names=3"
start_as "$flooder" text "$dir/A/long-text" open fill=4096 fill=2048
expect text "fill 2048"
expect_equal "a text" "open ok fill EDQUOT fill 2048" "$(head -n 3 "$dir/text.out" | paste -sd' ')"
has A "$flooder" "files=1 names=12"
as "$flooder" rm "$dir/A/long-text"
has A "$flooder" "names=11" # the text is there as long as the file is open
release text
wait_until "$deadline" has A "$flooder" "names=3"
as "$flooder" rmdir "$dir/A/$long/$long" "$dir/A/$long"
wait_until "$deadline" gone_user
known() { # HOST: how many names, and files without one, it knows
    sed -n 's/^names=//p' "$dir/$1/.dlockfs/status"
}
before=$(known A)
cat >"$dir/held.py" <<'END'
import errno, os, sys, time
kept = []
for number in range(100):
    path = f"{sys.argv[1]}/unlinked{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    os.write(file, b"text")
    kept.append(os.open(path, os.O_PATH))
    os.unlink(path)
    os.close(file)
try:
    os.fstat(kept[0])
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
try:
    os.open(f"/proc/self/fd/{kept[0]}", os.O_RDONLY)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
print("kept", flush=True)
time.sleep(3600)
END
start held setpriv "--reuid=$flooder" "--regid=$flooder" --clear-groups -- "$python" "$dir/held.py" "$dir/A"
wait_until "$deadline" grep -qx kept "$dir/held.out"
# The kernel walks to such a file no second time, as it would by a path: so the thread is told the second time that there is none.
expect_equal "what is asked through O_PATH" "ESTALE ENOENT" "$(head -n 2 "$dir/held.out" | paste -sd' ')"
known_again() {
    [ "$(known A)" -eq "$before" ]
}
wait_until "$deadline" known_again
has A "$flooder" "names=0" || ! grep -q "^uid=$flooder " "$dir/A/.dlockfs/users"
release held

# Lock files: each counts until it is taken away, whichever call made it; what is refused is not at the servers.
# made NUMBER CALL: what so many of these calls say, counted.
made() {
    as "$flooder" "$python" - "$dir/A/files" "$@" <<'END'
import collections, errno, os, sys
folder, count, call = sys.argv[1], int(sys.argv[2]), sys.argv[3]
calls = {
    "mkdir": os.mkdir,
    "symlink": lambda path: os.symlink("somewhere", path),
    "excl": lambda path: os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)),
    "link": lambda path: os.link(f"{folder}/first", path),
}
said = collections.Counter()
for number in range(count):
    try:
        calls[call](f"{folder}/{call}{number}")
        said["ok"] += 1
    except OSError as error:
        said[errno.errorcode[error.errno]] += 1
print(*(f"{word} {number}" for word, number in sorted(said.items())))
END
}
as "$flooder" touch "$dir/A/files/first"
has A "$flooder" "names=1"
for call in mkdir excl; do
    expect_equal "$call" "EDQUOT 3 ok 11" "$(made 14 "$call")"
    has A "$flooder" "names=12"
    expect_equal "a link after $call" "EDQUOT 1" "$(made 1 link)"
    expect_equal "names on another host after $call" 12 "$(find "$dir/B/files" -mindepth 1 -maxdepth 1 | wc -l)"
    as "$other" touch "$dir/A/files/other"
    as "$other" rm "$dir/A/files/other"
    as "$flooder" rm -r "$dir/A/files/$call"{0..10}
    wait_until "$deadline" has A "$flooder" "names=1"
done
# The target of a symbolic link counts as a text.
[[ "$(made 14 symlink)" == "EDQUOT "*" ok "* ]] || fail "symbolic links have no limit"
as "$flooder" find "$dir/A/files" -type l -delete
as "$flooder" rm "$dir/A/files/first"
wait_until "$deadline" has A "$flooder"
