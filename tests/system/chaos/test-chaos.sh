#!/bin/bash
# Chaos: processes on three hosts take locks of all kinds on a few names, while daemons are killed, with what their service
# manager keeps or without, stopped, and replaced by the program that they were started from (SIGUSR2), links cut and refused,
# servers of the ensemble killed, stopped and cut off from one another, leaders changed, and the processes themselves killed
# and interrupted. From what the processes wrote down: no two ever held what conflicts, tokens grew from one to the next, and
# who lost a lock was told. In the end everybody gets every lock, and nothing is left in ZooKeeper.
#
# From the environment: SEED, DURATION (see server-chaos.sh).
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=server-chaos.sh
. "$tests/system/chaos/server-chaos.sh"

find_leader() {
    zookeeper_find_leader 3
}

kill_server() {
    stop_zookeeper "$1"
}

launch_server() {
    zookeeper_launch "$1"
}

link_between() {
    echo "link$(printf '%s\n' "${1#zk}" "${2#zk}" | sort | tr -d '\n')"
}

server_fault_over() {
    :
}

linked_tick=1500 # half of the session: the servers hear of sessions as seldom as they may
start_linked_ensemble
zookeeper_name=zk1
run_server_chaos zk1 zk2 zk3
