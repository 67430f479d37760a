#!/bin/bash
# The connection of a mount is aborted while its daemon serves, as the guard of a former daemon does when the lease has ended:
# the daemon ends with an error, and the one that the service manager starts mounts anew. Unmounted, also by force, a daemon ends well.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

connections=/sys/fs/fuse/connections
requires test -d "$connections"

mounted_anew() {
    grep -q 'took the mount of a dead dlockfs away' "$dir/A.log" && mount_settled A && alive A
}

start_kept A
mountpoint -q "$connections" || mount -t fusectl fusectl "$connections"
number=$(mountpoint -d "$dir/A")
echo 1 >"$connections/${number#*:}/abort"
wait_until "$deadline" mounted_anew
grep -qx "dlockfs: error: $dir/A: the mount was aborted" "$dir/A.log"
flock -n "$dir/A/job" true
stop_kept A

start_dlockfs B
umount "$dir/B"
finish B
forget_host B
start_dlockfs C
umount -f "$dir/C"
finish C
forget_host C
