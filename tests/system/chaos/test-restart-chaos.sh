#!/bin/bash
# Daemons are replaced again and again, under load, by the program that they were started from (SIGUSR2): see
# restart-chaos.sh.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=restart-chaos.sh
. "$tests/system/chaos/restart-chaos.sh"

fault_begin() {
    send_signal "$2" USR2
}

restart_chaos start_dlockfs daemon-restart
