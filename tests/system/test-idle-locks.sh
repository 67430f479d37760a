#!/bin/bash
# Locks that nobody uses any more are removed from ZooKeeper by the host that made them, with the directories above them, without the
# server's own removal of containers; what is in use stays, and so do directories of lock files, and znodes that somebody else made.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lasting.sh
. "$tests/system/lasting.sh"

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

zookeeper make /dlockfs/theirs
hold held "$dir/A/held"
expect held held
hold other "$dir/B/shared"
expect other held
at A touch file
flock "$dir/A/theirs" true

names() { # FIRST LAST
    "$python" -c 'import fcntl, sys
for number in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
    with open(f"{sys.argv[1]}/many-{number}", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)' "$dir/A" "$1" "$2"
}
names 1 300
mkdir "$dir/A/deep" "$dir/A/deep/er"
flock "$dir/A/deep/er/lock" true
[ "$(znodes many-)" -gt 0 ] || fail "no lock of 300 is there"

# All names that are used again meanwhile can be locked, whatever goes.
wait_until "$deadline" are 0 many-
names 1 20
wait_until "$deadline" are 0 many-
wait_until "$deadline" are 0 deep
for name in held shared theirs files; do
    are 1 "$name" || fail "$name is gone"
done
says_at B file ls
release held
wait_until "$deadline" are 0 held
