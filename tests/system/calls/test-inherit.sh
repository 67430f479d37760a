#!/bin/bash
# A lock belongs to the open file: dup, fork and exec share it, and the last close releases it.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

for how in "open ex" excl; do
    # dup: the close of the first descriptor does not release; neither does the end of a child that closes its own.
    # shellcheck disable=SC2086
    call holder "$dir/A/job" $how dup close-first fork=close fork=fstat size await="$dir/go" close fstat hold
    expect holder "size 0"
    expect holder "child fstat ok"
    expect_status 1 flock -n "$dir/A/job" true
    expect_status 1 flock -n "$dir/B/job" true
    go go
    expect holder "close ok"
    comes_free "$dir/A/job"
    comes_free "$dir/B/job"
    release holder
    rm "$dir/go"
done

# A child that outlives its parent keeps the lock.
cat >"$dir/orphan.py" <<'END'
import fcntl, os, sys, time
how, file, folder = sys.argv[1:]
if how == "open":
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
else:
    fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
if os.fork() == 0:
    print("child", flush=True)
    while not os.path.exists(folder + "/end"):
        time.sleep(0.01)
    os._exit(0)
END
for how in flock open; do
    start parent "$python" "$dir/orphan.py" "$how" "$dir/A/job" "$dir"
    finish parent
    expect_status 1 flock -n "$dir/A/job" true
    expect_status 1 flock -n "$dir/B/job" true
    go end
    wait_until "$deadline" flock -n "$dir/B/job" true
    rm "$dir/end"
done

# Across exec, and through an inherited descriptor the lock can be given up for all.
exec 8>"$dir/A/job"
flock 8
start heir sh -c 'echo started; exec sleep infinity'
expect heir started
exec 9>&8 8>&-
expect_status 1 flock -n "$dir/B/job" true
exec 9>&-
expect_status 1 flock -n "$dir/B/job" true
release heir
comes_free "$dir/B/job"

exec 8>"$dir/A/job"
flock 8
flock -u 8
comes_free "$dir/B/job"
exec 8>&-

# Two opens of one name in one process exclude each other, as flock(2) says.
exec 8>"$dir/A/job" 9>"$dir/A/job"
flock 8
expect_status 1 flock -n 9
flock -u 8
flock -n 9
exec 8>&- 9>&-
