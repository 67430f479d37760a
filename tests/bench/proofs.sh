#!/bin/bash
# What questions of one user, whether it still holds its locks, cost another: the time of root's cycle (open, flock, close)
# while so many threads of a user who is not root ask by fsync(2), again and again.
#
#     tests/bench/proofs.sh [NUMBER...]      (0 1000 4000)
#
# RUN_S=N for another time than 5 seconds each. FORCE_SYNC=no: ZooKeeper does not wait for its disk.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
[ "${1:-}" = 0 ] || numbers "$@"
[ $# -gt 0 ] || set -- 0 1000 4000
user=12345
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
start_zookeeper
start_dlockfs A --session-timeout 40s

cat >"$dir/ask.py" <<'PYTHON'
"""ask.py MOUNT NUMBER: so many threads, each with a lock of its own, ask until the program is killed."""
import fcntl, os, resource, sys, threading

mount, number = sys.argv[1], int(sys.argv[2])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
threading.stack_size(65536)
files = [os.open(f"{mount}/asked{each}", os.O_RDWR | os.O_CREAT, 0o666) for each in range(number)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)


def ask(file):
    while True:
        try:
            os.fsync(file)
        except OSError:
            pass


for file in files:
    threading.Thread(target=ask, args=(file,), daemon=True).start()
print("asks", flush=True)
threading.Event().wait()
PYTHON

cat >"$dir/cycle.py" <<'PYTHON'
"""cycle.py FILE SECONDS: prints how many cycles, the median and the longest in milliseconds."""
import fcntl, statistics, sys, time

times = []
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end or not times:
    begin = time.monotonic()
    with open(sys.argv[1], "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    times.append((time.monotonic() - begin) * 1000)
    time.sleep(0.005)
print(f"{len(times):8} {statistics.median(times):10.1f} {max(times):10.1f}")
PYTHON

asked() {
    sed -n 's/^dlockfs_fuse_requests_total{.*"fsync"} //p' "$dir/A/.dlockfs/metrics"
}

printf '%8s %8s %10s %10s %10s\n' asking cycles "median ms" "longest" "fsync/s"
for number; do
    if [ "$number" -gt 0 ]; then
        start asking setpriv "--reuid=$user" "--regid=$user" --clear-groups -- "$python" "$dir/ask.py" "$dir/A" "$number"
        expect asking asks
    fi
    before=$(asked)
    line=$("$python" "$dir/cycle.py" "$dir/A/cycle" "${RUN_S:-5}")
    printf '%8d %s %10d\n' "$number" "$line" $((($(asked) - before) / ${RUN_S:-5}))
    [ "$number" -eq 0 ] || release asking
done
