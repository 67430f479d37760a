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
processes() { # NAME: those that see to it that A is unmounted
    ps -e -o pid=,comm=,args= | awk -v "name=$1" -v "point=$dir/A" '$2 == name && $NF == point { print $1 }'
}
are() { # NUMBER NAME
    [ "$(processes "$2" | wc -l)" -eq "$1" ]
}
wait_until "$deadline" are 0 fusermount3
start_dlockfs A -o auto_unmount
wait_until "$deadline" are 1 fusermount3
wait_until "$deadline" are 1 dlockfs-guard
kill -KILL "$(processes fusermount3)"
kill_dlockfs A
wait_until "$deadline" not_mounted "$dir/A"

start_dlockfs A -o auto_unmount
send_signal A USR2
wait_until "$deadline" restarted 3
stop_dlockfs A
