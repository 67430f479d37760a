#!/bin/bash
# 20,000 claims of others that are waited for outlive a lost connection: more than a client of ZooKeeper can bring along in one
# packet. See store_many_test.c.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
"$build/tests/system/stores/interface/store_tests" store_many "zookeeper://$(zookeeper_address zk)" || fail "see above"
