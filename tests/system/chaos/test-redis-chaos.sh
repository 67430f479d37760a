#!/bin/bash
# Chaos, as test-chaos.sh, with one server of Redis that writes each change to its disk before it answers (appendfsync always): it is
# killed and comes back with what it kept, and is paused; links to it are cut. No two hosts hold within that.
#
# From the environment: SEED, DURATION (see server-chaos.sh).
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=server-chaos.sh
. "$tests/system/chaos/server-chaos.sh"

find_leader() {
    echo redis
}

kill_server() {
    kill_redis "$1"
}

launch_server() {
    redis_launch "$1"
}

server_fault_over() {
    :
}

# shellcheck disable=SC2034 # for redis.sh
redis_durable=always
server_faults=(server-kill server-pause)
start_redis
run_server_chaos redis
