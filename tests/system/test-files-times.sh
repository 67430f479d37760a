#!/bin/bash
# The times of lock files (style = file), as Linux has them and the same on all hosts: what utime sets, and what a change of their names changes.
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
wait_until "$deadline" at A mkdir ready 2>/dev/null # a session may have to prove itself first
expect_equal "what is wrong" "" "$(timeout "$deadline" "$python" "$tests/system/files_times.py" "$dir/A/files" "$dir/B/files" 2>&1)"
