#!/bin/bash
# The store that keeps claims in ZooKeeper, without a daemon: order, watches, names, lost connections, expiry, and its
# end. See store_zookeeper_test.c.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

program=$build/tests/system/store_zookeeper_test
requires test -x "$program"
export LSAN_OPTIONS="suppressions=$tests/lsan.supp:print_suppressions=0"
start_zookeeper
"$program" "$(zookeeper_address zk)"
