#!/bin/bash
# Daemons under a service manager that keeps their descriptors (kept.sh) are killed, told to leave (SIGUSR1), and replaced
# (SIGUSR2), under load, at any moment, also before the last one has gone on: see restart-chaos.sh.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=restart-chaos.sh
. "$tests/system/chaos/restart-chaos.sh"

fault_begin() {
    case $1 in
        daemon-crash*) send_signal "$2" KILL ;;
        daemon-leave) send_signal "manager-$2" USR1 ;;
        daemon-restart) send_signal "$2" USR2 ;;
    esac
}

restart_chaos start_kept daemon-crash daemon-crash-too daemon-leave daemon-restart
for host in A B C; do
    stop_kept "$host"
done
