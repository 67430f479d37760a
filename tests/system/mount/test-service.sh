#!/bin/bash
# What a service manager hears: readiness when the mount is usable and not before, pings of the watchdog from the loop while it
# runs, the end; and nothing that it did not ask for.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires grep -q 'HAVE_LIBSYSTEMD' "$build/compile_commands.json"

# start_manager HOST
start_manager() {
    start "manager-$1" "$python" "$tests/system/mount/notify.py" "$dir/notify-$1" "$dir/$1"
    expect "manager-$1" listening
}

# heard HOST LINE: how often.
heard() {
    grep -cxF -- "$2" "$dir/manager-$1.out" || true
}

heard_more() {
    [ "$(heard "$1" "$2")" -gt "$3" ]
}

# tell HOST TEXT: what its service manager hears from this test.
tell() {
    "$python" - "$dir/notify-$1" "$2" <<'END'
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])
END
}

# Ready, and pings.
start_manager A
NOTIFY_SOCKET=$dir/notify-A WATCHDOG_USEC=400000 launch_dlockfs A
wait_until "$deadline" heard_more A WATCHDOG=1 2
expect_equal "what came first" "READY=1 usable" \
    "$(sed '1d;/^WATCHDOG/d;/^STATUS/d' "$dir/manager-A.out" | head -n 2 | paste -sd' ')"
# The loop does not run: no ping. Once it runs again there are more.
pause A
tell A PAUSED=1
expect manager-A PAUSED=1 # so what was on its way is there
count=$(heard A WATCHDOG=1)
expect_status 124 timeout 1 "$python" -c 'import select; select.select([], [], [])'
expect_equal "pings of a daemon that is stopped" "$count" "$(heard A WATCHDOG=1)"
resume A
wait_until "$deadline" heard_more A WATCHDOG=1 "$count"
# Reading the configuration anew is told, and that it is done.
send_signal A HUP
wait_until "$deadline" heard_more A READY=1 1
expect_equal "a reload" "RELOADING=1 MONOTONIC_USEC=N READY=1" \
    "$(grep -A2 RELOADING "$dir/manager-A.out" | grep -v WATCHDOG | paste -sd' ')"
stop_dlockfs A
wait_until "$deadline" heard_more A STOPPING=1 0

# No watchdog, or that of another process: no ping.
start_manager B
NOTIFY_SOCKET=$dir/notify-B launch_dlockfs B
wait_until "$deadline" heard_more B usable 0
start_manager C
NOTIFY_SOCKET=$dir/notify-C WATCHDOG_USEC=1000 WATCHDOG_PID=1 launch_dlockfs C
wait_until "$deadline" heard_more C usable 0
for host in B C; do
    flock "$dir/$host/job" true
    stop_dlockfs "$host"
    wait_until "$deadline" heard_more "$host" STOPPING=1 0
    expect_equal "pings to $host" 0 "$(heard "$host" WATCHDOG=1)"
done

# A mount that goes to the background, as that of mount(8), is no service of whoever called it.
start_manager D
mkdir "$dir/D"
NOTIFY_SOCKET=$dir/notify-D WATCHDOG_USEC=10000 "$dlockfs" --store local: "$dir/D"
flock "$dir/D/job" true
umount "$dir/D"
tell D LAST=1
expect manager-D LAST=1
expect_equal "what a daemon in the background says" "listening LAST=1" "$(paste -sd' ' "$dir/manager-D.out")"
