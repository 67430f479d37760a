#!/bin/bash
# Names of any bytes: spaces, percent signs, newlines, invalid UTF-8, 255 bytes, dots, ZooKeeper's own words. The same name
# excludes on both hosts; names that look alike do not exclude each other. In ZooKeeper, and in etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
"$python" "$tests/system/calls/names.py" "$dir/A" "$dir/B"
# With the lock's znodes directly below the server's root, where "zookeeper" is taken.
stop_dlockfs A
stop_dlockfs B
start_dlockfs A --store "zookeeper://$(zookeeper_address)/"
start_dlockfs B --store "zookeeper://$(zookeeper_address)/"
"$python" "$tests/system/calls/names.py" "$dir/A" "$dir/B"
# 256 bytes are too many for any file system.
expect_status 66 flock -n "$dir/A/$(printf '%0256d' 0)" true

# What is missing above a lock deep down is made in few rounds: not one for each level, with all levels in it.
deep=$dir/A$(printf '/d%.0s' {1..300})
mkdir -p "$deep"
before=$(zookeeper_received)
flock "$deep/job" true
requests=$(($(zookeeper_received) - before))
[ "$requests" -lt 1500 ] || fail "$requests requests for a lock below 300 directories"
stop_dlockfs A
stop_dlockfs B

# In etcd; also the longest path that the kernel has: its name is one key, which comes several times in a request.
start_etcd
start_dlockfs A
start_dlockfs B
"$python" "$tests/system/calls/names.py" "$dir/A" "$dir/B"
expect_status 66 flock -n "$dir/A/$(printf '%0256d' 0)" true
for host in A B; do
    "$python" - "$dir/$host" <<'END'
import errno, fcntl, os, sys
os.chdir(sys.argv[1])
for _ in range(15):
    os.mkdir("ä" * 127 + "%")
    os.chdir("ä" * 127 + "%")
for name in b"\xff" * 255, b"x" * 255:  # 4,095 bytes
    file = os.open(name, os.O_CREAT | os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.fsync(file)
    os.close(file)
os.mkdir("x" * 254)
os.chdir("x" * 254)
try:
    os.open("y", os.O_CREAT | os.O_RDWR)
    sys.exit("a path of 4,096 bytes")
except OSError as error:
    assert error.errno == errno.ENAMETOOLONG, error
END
done
# An exclusive open that is closed at once is warned of, whatever the name.
! cat "$dir/A.log" "$dir/B.log" | grep -E 'error|warning' | grep -v 'has made the file by an exclusive open\|different messages' ||
    fail "errors for long names"
