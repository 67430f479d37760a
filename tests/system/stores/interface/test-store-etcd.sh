#!/bin/bash
# The store that keeps claims in etcd, without a daemon: order, watches, names, lost connections, expiry, and its end, as for every
# store (store_fixture.h); and what is its own: requests that are held back, compaction, keys that are made again.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

names="store_queue store_mark store_watch store_look store_session store_proof store_file etcd_batch etcd_file etcd_queue etcd_watch"
programs=$build/tests/system/stores/interface
requires test -x "$programs/etcd_grpc_test" # a build with etcd
start_etcd
failed=
for name in $names; do
    "$programs/store_tests" "$name" "etcd://$(etcd_address)" || failed+=" $name"
done
[ -z "$failed" ] || fail "tests of:$failed"
