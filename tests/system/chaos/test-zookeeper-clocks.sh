#!/bin/bash
# Three servers of ZooKeeper whose wall clocks are stepped. Nobody notices anything, and a host that is cut off from them is fenced in
# time. (Their monotonic clocks cannot be stepped so: HotSpot waits until a time of the kernel's own clock.)
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=server-clocks.sh
. "$tests/system/chaos/server-clocks.sh"

made=0

clock_of() {
    made=$((made + 1))
    zookeeper clock "/clock$RANDOM$made"
}

start_ensemble 3
zookeeper_name=$(zookeeper_leader 3)
clock_is_stepped "$zookeeper_name"
nobody_notices "$zookeeper_name" zk1 zk2 zk3
zookeeper_name=$(zookeeper_leader 3)
fenced_in_time "$zookeeper_name"
