#!/bin/bash
# The store that keeps claims in etcd, without a daemon: order, watches, names, lost connections, expiry, and its end, as for every
# store (store_fixture.h); and what is its own: requests that are held back, compaction, keys that are made again.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

programs=$build/tests/system/stores/interface
requires test -x "$programs/etcd_grpc_test" # a build with etcd

# run NAME...: side by side, as they have paths of their own.
run() {
    local name failed=
    for name; do
        start "$name" "$programs/store_tests" "$name" "etcd://$(etcd_address)"
    done
    for name; do
        finish "$name" || failed+=" $name"
        cat "$dir/$name.out"
    done
    [ -z "$failed" ] || fail "tests of:$failed"
}

together() {
    start_etcd
    run store_queue store_mark store_watch store_look store_session store_proof store_file etcd_file etcd_queue
}

alone() {
    start_etcd
    run etcd_batch # counts the revisions of the server
    run etcd_watch # has them compacted away, which others may still want to hear of
}

scene together together
scene alone alone
scenes_end
