#!/bin/bash
# With the mount option auto_unmount nothing stays mounted when the daemon is killed, also when another program has gone on
# in its place.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# At once, and with its process group: the guard is not in it, however late it begins.
start_dlockfs A -o auto_unmount
kill_dlockfs A
wait_until "$deadline" not_mounted "$dir/A"

# restarted NUMBER: so many programs have taken over.
restarted() {
    [ "$(grep -c ' goes on with version ' "$dir/A.log")" -eq "$1" ]
}

start_dlockfs A -o auto_unmount
for number in 1 2; do
    send_signal A USR2
    wait_until "$deadline" restarted "$number"
done
flock "$dir/A/job" true
kill_dlockfs A
wait_until "$deadline" not_mounted "$dir/A"

# The daemon's guard does it. If the guard is killed, the daemon starts another one, though nothing is held.
guards() { # the guards of A
    ps -e -o pid=,comm=,args= | awk -v "point=$dir/A" '$2 == "dlockfs-guard" && $NF == point { print $1 }'
}
is_replaced() { # GUARD: by another one
    [ -n "$(guards)" ] && [ "$(guards)" != "$1" ]
}
has_guard() {
    [ -n "$(guards)" ]
}
no_guards() {
    [ -z "$(guards)" ]
}
wait_until "$deadline" no_guards
start_dlockfs A -o auto_unmount
wait_until "$deadline" has_guard
guard=$(guards)
kill -KILL "$guard"
wait_until "$deadline" is_replaced "$guard"
kill_dlockfs A
wait_until "$deadline" not_mounted "$dir/A"

# A mount that lives is left alone, and a clean stop takes no longer.
wait_until "$deadline" no_guards
start_dlockfs A -o auto_unmount
send_signal A USR2
wait_until "$deadline" restarted 3
stop_dlockfs A

# Without the option the mount stays, so that calls fail: they would lock files in the folder below it.
wait_until "$deadline" no_guards
start_dlockfs A
kill_dlockfs A
wait_until "$deadline" no_guards
grep -q " $dir/A fuse.dlockfs" /proc/self/mounts || fail "unmounted without auto_unmount"
umount "$dir/A"
