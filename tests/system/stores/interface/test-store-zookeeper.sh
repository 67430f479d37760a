#!/bin/bash
# The store that keeps claims in ZooKeeper, without a daemon: order, watches, names, lost connections, expiry, and its
# end, as for every store (store_fixture.h); and what is its own.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

names="store_queue store_mark store_watch store_look store_session store_proof store_file
    zookeeper_queue zookeeper_pair zookeeper_watch zookeeper_look zookeeper_session zookeeper_proof zookeeper_file"
for name in $names; do
    requires test -x "$build/tests/system/stores/interface/${name}_test"
done
start_zookeeper
failed=
for name in $names; do
    "$build/tests/system/stores/interface/${name}_test" "zookeeper://$(zookeeper_address zk)" || failed+=" $name"
done
[ -z "$failed" ] || fail "tests of:$failed"
