#!/bin/bash
# What one user can add to the time that passes without a daemon after kill -9: a user who is not root fills the mount as far as
# the limits allow, then the daemon is killed, and the next one goes on. Prints how many there are of what the user made, the
# size of the journal, the processor time of the next daemon until it goes on, and how long root found no service.
#
#     tests/bench/takeover.sh [NUMBER]      (16000)
#
# KINDS: "names" (with a path and a text of 4 KiB each), "unlinked" (the same, without a text: removed, and held by O_PATH), or both.
# BYTE: what paths and texts consist of; the default is one that takes three bytes in the journal. FILLER=0: it is root who fills
# the mount, without a limit.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
# shellcheck source=../lib/kept.sh
. "$tests/lib/kept.sh"

number=${1:-16000}
read -ra kinds <<<"${KINDS:-names unlinked}"
user=${FILLER:-12345}
zookeeper_options=("-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
[ "${STORE:-}" = local ] || start_zookeeper

cat >"$dir/fill.py" <<'PYTHON'
"""fill.py MOUNT KIND NUMBER BYTE: makes what it can, says how much, and keeps it until it is killed."""
import os, resource, sys, time

mount, kind, number, byte = sys.argv[1], sys.argv[2], int(sys.argv[3]), os.fsencode(sys.argv[4])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.umask(0)
folder = os.open(mount, os.O_RDONLY)
try:
    for _ in range(15):
        os.mkdir(byte * 255, dir_fd=folder)
        inner = os.open(byte * 255, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
except OSError as error:
    print("the path is shorter:", error, flush=True)
made, kept, why = 0, [], "all"
for name in range(number):
    path = byte * 230 + b"%08d" % name
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666, dir_fd=folder)
        if kind == "names":
            os.write(file, byte * 4096)
        else:
            kept.append(os.open(path, os.O_PATH, dir_fd=folder))
            os.unlink(path, dir_fd=folder)
        os.close(file)
    except OSError as error:
        why = str(error)
        break
    made += 1
print("made", made, why, flush=True)
while True:
    time.sleep(3600)
PYTHON

cat >"$dir/probe.py" <<'PYTHON'
"""probe.py FILE: the longest time for which root could not lock, until it is killed."""
import fcntl, os, sys, time

longest, last = 0, time.monotonic()
while True:
    with open(sys.argv[1], "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    now = time.monotonic()
    if now - last > longest:
        longest = now - last
        with open(sys.argv[2] + ".new", "w") as out:
            print(round(longest * 1000), file=out)
        os.rename(sys.argv[2] + ".new", sys.argv[2])
    last = now
    time.sleep(0.001)
PYTHON

# The journal's size, in bytes.
journal() {
    local file
    for file in "/proc/$(pid A)/fd/"*; do
        [[ $(readlink "$file") != "/memfd:dlockfs journal"* ]] || stat -L -c '%b * %B' "$file"
    done
}

# processor PROCESS: what it has used, in milliseconds.
processor() {
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / tick }' "/proc/$1/stat"
}

measure() {
    local kind=$1 made
    start_kept A --session-timeout 80s -o idle=1d
    start filler setpriv "--reuid=$user" "--regid=$user" --clear-groups -- "$python" "$dir/fill.py" "$dir/A" "$kind" "$number" "${BYTE:-$'\1'}"
    wait_until "$deadline" finds '^made' "$dir/filler.out"
    made=$(sed -n 's/^made //p' "$dir/filler.out")
    hold holder "$dir/A/held"
    expect holder held
    start probe "$python" "$dir/probe.py" "$dir/A/probed" "$dir/longest"
    wait_until "$deadline" test -e "$dir/longest"
    sleep 1 # what is measured is the time after it, too
    bytes=$(($(journal)))
    echo 0 >"$dir/longest"
    crash A
    used=$(processor "$(pid A)")
    sleep 1
    printf '%-9s %7d KiB of journal, %6d ms of processor, %6d ms without service; made: %s\n' "$kind" $((bytes / 1024)) \
        "$used" "$(<"$dir/longest")" "$made"
    release probe holder filler
    kill_kept A
    umount -l "$dir/A" 2>/dev/null || true
}

for kind in "${kinds[@]}"; do
    measure "$kind"
done
