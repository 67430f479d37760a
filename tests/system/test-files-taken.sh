#!/bin/bash
# Names of lock files that another host takes away (style = file): the host that had made them learns of it at once, and not with its next
# heartbeat, which the timeout of the session keeps away here.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lasting.sh
. "$tests/system/lasting.sh"

"start_${STORE:-zookeeper}"
files_config files
for host in A B; do
    start_dlockfs "$host" --config "$dir/files.ini" --session-timeout 60s
done

# Whoever has looked and found the name gone can make it anew.
at B mkdir job
at A rmdir job
no_file B job || fail "job was removed on A, B finds it"
at B mkdir job || fail "job was removed on A, B cannot make it"
at B rmdir job
