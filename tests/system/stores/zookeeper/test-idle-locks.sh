#!/bin/bash
# Locks that nobody uses any more are removed from ZooKeeper by the host that made them, with the directories above them, without the
# server's own removal of containers; what is in use stays, and so do directories of lock files, and znodes that somebody else made.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

zookeeper_options=(-Dznode.container.checkIntervalMs=100000000)
start_zookeeper
files_config files
start_dlockfs A --config "$dir/files.ini"
start_dlockfs B --config "$dir/files.ini"

znodes() { # PREFIX: how many locks of that name there are
    zookeeper children /dlockfs | grep -c "^$1" || true
}

are() { # NUMBER PREFIX
    [ "$(znodes "$2")" -eq "$1" ]
}

removed() { # how many znodes A has removed, or has found to be in use after all
    sed -n 's/^dlockfs_store_operation_seconds_count{operation="tidy"} //p' "$dir/A/.dlockfs/metrics"
}

# names HOST PREFIX FIRST LAST [SECONDS]: locks each, again and again for so long.
names() {
    "$python" - "$dir/$1/$2" "$3" "$4" "${5:-0}" <<'END'
import fcntl, sys, time
end = time.monotonic() + float(sys.argv[4])
while True:
    for number in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
        with open(f"{sys.argv[1]}{number}", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    if time.monotonic() >= end:
        break
END
}

zookeeper make /dlockfs/theirs
hold held "$dir/A/held"
expect held held
hold other "$dir/B/shared"
expect other held
at A touch file
flock "$dir/A/theirs" true
flock "$dir/A/noted" true
zookeeper set /dlockfs/noted 'a note of the administrator'

names A many- 1 300
mkdir "$dir/A/deep" "$dir/A/deep/er"
flock "$dir/A/deep/er/lock" true
[ "$(znodes many-)" -gt 0 ] || fail "no lock of 300 is there"

# What A has made and B uses: no call of B fails, whenever A removes it; the claim's create finds no node then, and comes again.
names A race- 1 30
names B race- 1 30 12

# All names that are used again can be locked.
wait_until "$deadline" are 0 many-
are 1 held || fail "a lock that is held is gone"
names A many- 1 20
release held
for name in many- deep held; do
    wait_until "$deadline" are 0 "$name"
done
[ "$(removed)" -ge 300 ] || fail "the metric counts $(removed)"
for name in shared theirs noted files; do
    are 1 "$name" || fail "$name is gone"
done
says_at B file ls
