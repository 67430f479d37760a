#!/bin/bash
# The store that keeps claims in ZooKeeper, without a daemon: order, watches, names, lost connections, expiry, and its
# end. See zookeeper_fixture.h.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

nouns="queue mark pair watch look session proof"
for noun in $nouns; do
    requires test -x "$build/tests/system/zookeeper_${noun}_test"
done
start_zookeeper
failed=
for noun in $nouns; do
    "$build/tests/system/zookeeper_${noun}_test" "$(zookeeper_address zk)" || failed+=" $noun"
done
[ -z "$failed" ] || fail "tests of:$failed"
