#!/bin/bash
# With the mount option auto_unmount nothing stays mounted when the daemon is killed, also when another program has gone on
# in its place.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

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

# The process of libfuse's that does it may fail: the daemon's guard stands in.
start_dlockfs A -o auto_unmount
unmounter=$(pgrep -f "^fusermount3 .*auto_unmount.* $dir/A\$")
kill -KILL "$unmounter"
kill_dlockfs A
wait_until "$deadline" not_mounted "$dir/A"

start_dlockfs A -o auto_unmount
send_signal A USR2
wait_until "$deadline" restarted 3
stop_dlockfs A
