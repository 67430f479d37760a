#!/bin/bash
# Many files open at once on one mount: how long it takes to open and to close them, the daemon's memory for each, how
# long another call takes meanwhile, and how long until the daemon has forgotten them all.
#
#     tests/bench/names.sh [NUMBER]      (100000)
#
# STORE=local: without ZooKeeper. LOCK=yes: each is also locked, by flock.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

number=${1:-100000}
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
[ "${STORE:-}" = local ] || start_zookeeper
start_dlockfs A -o idle=1s
flock -n "$dir/A/other" true
"$python" - "$dir/A" "$number" "$(pid A)" "${LOCK:-no}" <<'END'
import fcntl, os, resource, statistics, sys, time

mount, number, daemon, locks = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "yes"
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
each = min(limit - 100, number)


def memory():
    with open(f"/proc/{daemon}/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))


def known():
    return os.statvfs(mount).f_files


def latency():
    times = []
    for _ in range(200):
        begin = time.monotonic()
        with open(f"{mount}/other", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        times.append((time.monotonic() - begin) * 1e6)
    return statistics.median(times)


def open_some(first, ready, go):
    files = []
    for name in range(first, min(first + each, number)):
        files.append(os.open(f"{mount}/name{name}", os.O_RDWR | os.O_CREAT))
        if locks:
            fcntl.flock(files[-1], fcntl.LOCK_EX)
    os.write(ready, b"x")
    os.read(go, 1)
    os._exit(0)


print(f"open, flock, close of one more: {latency():.0f} us before")
before, names, begin = memory(), known(), time.monotonic()
ready, ready_end = os.pipe()
go_end, go = os.pipe()
children = []
for first in range(0, number, each):
    child = os.fork()
    if child == 0:
        os.close(go)
        open_some(first, ready_end, go_end)
    children.append(child)
os.close(go_end)
for _ in children:
    if not os.read(ready, 1):
        sys.exit("a process has ended")
print(f"{number} names open after {time.monotonic() - begin:.1f} s, {(memory() - before) / number:.0f} bytes each")
print(f"open, flock, close of one more: {latency():.0f} us meanwhile")
begin = time.monotonic()
os.close(go)
for child in children:
    if os.waitpid(child, 0)[1]:
        sys.exit("a process has failed")
print(f"closed after {time.monotonic() - begin:.1f} s")
while known() > names:
    time.sleep(0.05)
print(f"forgotten after {time.monotonic() - begin:.1f} s, of which 1 s is `idle`")
END
