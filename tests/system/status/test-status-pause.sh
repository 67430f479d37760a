#!/bin/bash
# While ZooKeeper stands still, .dlockfs/status answers at once and the rest of .dlockfs waits for a bounded time, in which a signal
# ends it and neither locks nor the directories that they are in are held up.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# reader NAME FILE: a program that reads it and says how that ended.
reader() {
    # shellcheck disable=SC2016
    start "$1" "$python" -c 'import errno, sys
try:
    print(len(open(sys.argv[1]).read()))
except OSError as error:
    print(errno.errorcode[error.errno])' "$2"
}

start_zookeeper
start_dlockfs A --session-timeout 60s
tree=$dir/A/.dlockfs
hold holder "$dir/A/job"
expect holder held
cat "$tree/queues" "$tree/locks/job" >"$dir/before"

pause zk
begin=$(now_ms)
reader all "$tree/queues"
reader one "$tree/locks/job"
start list ls "$tree/locks"
start killed cat "$tree/queues"
start interrupted cat "$tree/queues"
for name in all one list killed interrupted; do
    wait_until "$deadline" asleep "$name"
done
soon cat "$tree/status" >"$dir/status"
grep -q '^session=' "$dir/status"
grep -qx holders=1 "$dir/status"
# Names of locks are looked up under the lock of their directory; those of the tree, and of the mount, are not held up.
for path in "$dir/A" "$tree" "$tree/status" "$tree/queues" "$tree/locks"; do
    soon stat "$path" >"$dir/stat.out"
done
soon ls -la "$dir/A" "$tree" >"$dir/ls.out"
soon sh -c ': >"$1"' - "$dir/A/new"
soon mkdir "$dir/A/folder"
soon rmdir "$dir/A/folder"
call elsewhere "$dir/A/elsewhere" open ex hold
wait_until "$deadline" asleep elsewhere
# Who looks names up there waits for one another, but not long.
wait_until "$prompt" gone one
for number in {1..10}; do
    reader "lookup$number" "$tree/locks/name$number"
done
for number in {1..10}; do
    wait_until 20 gone "lookup$number"
done
kill -TERM "$(pid interrupted)"
kill -KILL "$(pid killed)"
wait_until "$prompt" gone interrupted
wait_until "$prompt" gone killed
for name in all list; do
    wait_until 30 gone "$name"
done
took=$(($(now_ms) - begin))
[ "$took" -ge 4500 ] || fail "gave up after $took ms"
expect_equal "all queues" ETIMEDOUT "$(<"$dir/all.out")"
expect_equal "one queue" ETIMEDOUT "$(<"$dir/one.out")"
grep -qi 'timed out' "$dir/list.out"

# Who reads when it goes on is answered, and locking is not behind that.
reader late "$tree/queues"
wait_until "$deadline" asleep late
resume zk
expect elsewhere "ex ok"
comes_free "$dir/A/other"
wait_until "$deadline" gone late
[ "$(<"$dir/late.out")" -gt 0 ] || fail "late: $(<"$dir/late.out")"
timeout 10 cat "$tree/locks/job" >"$dir/after"
cmp <(tail -n 2 "$dir/before") "$dir/after"
release holder elsewhere

stop_dlockfs A

# Without any server: an error in time, and the text when it is back. (With a short session timeout the client does not wait
# long for a server that took a connection while it started, and forgot it.)
start_dlockfs B --session-timeout 6s
tree=$dir/B/.dlockfs
comes_free "$dir/B/job"
timeout 10 cat "$tree/queues"
stop_zookeeper
reader without "$tree/queues"
wait_until 30 gone without
expect_equal "without a server" ETIMEDOUT "$(<"$dir/without.out")"
soon cat "$tree/status" >"$dir/status"
grep -qx 'session=suspended\|session=lost' "$dir/status"
reader again "$tree/queues"
wait_until "$deadline" asleep again
start_zookeeper
wait_until 30 gone again
comes_free "$dir/B/job"
timeout 10 cat "$tree/queues"

# The daemon stops while somebody waits.
pause zk
reader stopped "$tree/queues"
wait_until "$deadline" asleep stopped
stop_dlockfs B
wait_until "$prompt" gone stopped
expect_equal "the daemon stops" EIO "$(<"$dir/stopped.out")"

# The servers answer, but slowly: a name is looked up for a second at most, also where that takes several questions, each of which is
# answered within it.
resume zk
start_proxy slow
echo 300 >"$dir/slow/delay"
printf '%s\n' '[mount]' 'directories = files' '[locks "files"]' 'style = file' >"$dir/files.ini"
store=$(proxied slow)
start_dlockfs C --config "$dir/files.ini" --session-timeout 60s
hold holder "$dir/C/job"
expect holder held
# looks EXPECTED NAME: whether a lookup says that.
looks() {
    [ "$1" = "$("$python" -c 'import errno, os, sys
try:
    os.stat(sys.argv[1])
    print("ok")
except OSError as error:
    print(errno.errorcode[error.errno])' "$dir/C/.dlockfs/locks/$2")" ]
}
wait_until "$deadline" looks ok job # one question
begin=$(now_ms)
looks ETIMEDOUT files || fail "a lookup that takes two questions ends after $(($(now_ms) - begin)) ms"
release holder
