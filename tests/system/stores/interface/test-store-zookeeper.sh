#!/bin/bash
# The store that keeps claims in ZooKeeper, without a daemon: order, watches, names, lost connections, expiry, and its
# end, as for every store (store_fixture.h); and what is its own.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

names="store_queue store_mark store_watch store_look store_session store_proof store_file
    zookeeper_queue zookeeper_watch zookeeper_look zookeeper_session zookeeper_proof"
programs=$build/tests/system/stores/interface
start_zookeeper
store_url=zookeeper://$(zookeeper_address zk)
# Side by side, as they have paths of their own.
for name in $names; do
    start "$name" "$programs/store_tests" "$name" "$store_url"
done
for name in zookeeper_pair zookeeper_file; do
    start "$name" "$programs/${name}_test" "$store_url"
done
failed=
for name in $names zookeeper_pair zookeeper_file; do
    finish "$name" || failed+=" $name"
    cat "$dir/$name.out"
done
[ -z "$failed" ] || fail "tests of:$failed"
