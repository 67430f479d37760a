#!/bin/bash
# The times of lock files (style = file), as Linux has them and the same on all hosts: what utime sets, and what a change of their names changes; also those of directories.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

start_plain_hosts
expect_equal "what is wrong" "" "$(timeout "$deadline" "$python" "$tests/system/files/files_times.py" "$dir/A/files" "$dir/B/files" 2>&1)"
# However many names come and go, the times are stored ten times a second.
stores() {
    sed -n 's/^dlockfs_store_operation_seconds_count{.*operation="alter".*} //p' "$dir/A/.dlockfs/metrics"
}
at A mkdir many
before=$(stores)
began=${EPOCHREALTIME/./}
at A "$python" -c '
import os
for number in range(100):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_EXCL))'
stored=$(($(stores) - before - 100)) took=$(((${EPOCHREALTIME/./} - began) / 1000))
[ "$stored" -le "$((took / 100 + 3))" ] || fail "in $took ms the times were stored $stored times"
at A rm -r many
expect_equal "what is wrong of directories" "" "$(timeout "$deadline" "$python" "$tests/system/files/files_directories.py" "$dir/A/files" "$dir/B/files" 2>&1)"
