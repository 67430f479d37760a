#!/bin/bash
# Messages go to the journal with their fields where stderr leads there, and from a daemon in the background.

# The journal's socket has a fixed place: in a mount namespace of its own, that ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires grep -q 'HAVE_LIBSYSTEMD' "$build/compile_commands.json"
mount -t tmpfs none /run
mkdir -p /run/systemd/journal
start journal "$python" "$tests/system/status/journal.py" /run/systemd/journal/socket
expect journal listening

# message FILTER: the first message that jq selects.
message() {
    sed 1d "$dir/journal.out" | jq -c "select($1)" | head -n 1
}

has_message() {
    [ -n "$(message "$1")" ]
}

# field MESSAGE NAME
field() {
    jq -r ".$2" <<<"$1"
}

: >"$dir/A.log"
JOURNAL_STREAM=$(stat -c %d:%i "$dir/A.log") start_dlockfs A
wait_until "$deadline" has_message '.MESSAGE | test("is ready")'
ready=$(message '.MESSAGE | test("is ready")')
expect_equal identifier dlockfs "$(field "$ready" SYSLOG_IDENTIFIER)"
expect_equal facility 3 "$(field "$ready" SYSLOG_FACILITY)"
expect_equal priority 6 "$(field "$ready" PRIORITY)"
expect_equal "mount point" "$dir/A" "$(field "$ready" DLOCKFS_MOUNTPOINT)"
expect_equal lock null "$(field "$ready" DLOCKFS_LOCK)"

# About a lock, whose name has bytes that a line cannot have; the text has them escaped, the field as they are.
name=$'odd\nname'
hold holder "$dir/A/$name"
expect holder held
"$dlockctl" --mount "$dir/A" break "$name" --yes >/dev/null
wait_until "$deadline" has_message '.MESSAGE | test("has broken the lock")'
broken=$(message '.MESSAGE | test("has broken the lock")')
expect_equal lock "$name" "$(field "$broken" DLOCKFS_LOCK)"
expect_equal priority 3 "$(field "$broken" PRIORITY)"
[[ $(field "$broken" MESSAGE) == 'odd\x0Aname: '*' has broken the lock of process '* ]] || fail "$broken"
release holder
stop_dlockfs A
expect_equal "what went to stderr" "" "$(<"$dir/A.log")"

# The audit has a field for each value, as it is.
: >"$dir/D.log"
JOURNAL_STREAM=$(stat -c %d:%i "$dir/D.log") start_dlockfs D -o audit
"$dlockctl" --mount "$dir/D" run "$name" true
wait_until "$deadline" has_message '.DLOCKFS_AUDIT == "released"'
granted=$(message '.DLOCKFS_AUDIT == "granted"')
released=$(message '.DLOCKFS_AUDIT == "released"')
expect_equal granted "6 $name flock exclusive 0 dlockctl null null" "$(field "$granted" 'PRIORITY + " " + .DLOCKFS_LOCK + " " + .DLOCKFS_KIND + " " +
    .DLOCKFS_MODE + " " + .DLOCKFS_UID + " " + .DLOCKFS_COMMAND + " " + (.DLOCKFS_HELD | tostring) + " " + (.DLOCKFS_TOKEN | tostring)')"
[[ $(field "$granted" DLOCKFS_WAITED) =~ ^[0-9]+\.[0-9]{6}$ ]] || fail "$granted"
[[ $(field "$released" DLOCKFS_HELD) =~ ^[0-9]+\.[0-9]{6}$ ]] || fail "$released"
expect_equal pid "$(field "$granted" DLOCKFS_PID)" "$(field "$released" DLOCKFS_PID)"
expect_equal token "$(message '.DLOCKFS_AUDIT == "token"' | jq -r .DLOCKFS_TOKEN)" "$(field "$released" DLOCKFS_TOKEN)"
expect_equal host "$(hostname)" "$(field "$granted" DLOCKFS_HOST)"
stop_dlockfs D

# A daemon in the background, whose stderr was something else.
mkdir "$dir/B"
"$dlockfs" --store local: "$dir/B" 2>"$dir/B.log"
hold holder "$dir/B/job"
expect holder held
"$dlockctl" --mount "$dir/B" break job --yes >/dev/null
wait_until "$deadline" has_message ".DLOCKFS_MOUNTPOINT == \"$dir/B\" and .DLOCKFS_LOCK == \"job\""
release holder
umount "$dir/B"

# In the foreground stderr is stderr, unless it is what systemd said that it made.
JOURNAL_STREAM=1:1 start_dlockfs C
stop_dlockfs C
grep -q 'is ready' "$dir/C.log"
! has_message ".DLOCKFS_MOUNTPOINT == \"$dir/C\"" || fail "in the journal: $(message ".DLOCKFS_MOUNTPOINT == \"$dir/C\"")"

# A process that ends leaves its last words to stderr, with their priority: of what comes by the socket the journal no longer finds out
# which service has said it.
log=$dir/E.log
: >"$log"
stream=$(stat -c %d:%i "$log")
JOURNAL_STREAM=$stream expect_status 1 "$dlockfs" --check -o idle=never "$dir/C" 2>>"$log"
[[ $(<"$log") == '<3>'*idle* ]] || fail "said: $(<"$log")"
! has_message '.MESSAGE | test("idle")' || fail "in the journal: $(message '.MESSAGE | test("idle")')"
