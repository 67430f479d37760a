#!/bin/bash
# The store's threads, and the daemon's, under ThreadSanitizer: a build of their own.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

folder=$build/threads
names="store_queue store_watch store_look store_session store_proof zookeeper_queue zookeeper_session zookeeper_proof"
program=tests/system/stores/interface/store_tests
[ -e "$folder/build.ninja" ] || meson setup "$folder" "$source_dir" -Db_sanitize=thread -Db_lundef=false \
    -Doptimization=1 >"$dir/build.log" 2>&1 || fail "$(tail -n 20 "$dir/build.log")"
ninja -C "$folder" dlockfs "$program" >"$dir/build.log" 2>&1 || fail "$(tail -n 20 "$dir/build.log")"

export TSAN_OPTIONS="log_path=$dir/sanitizer:halt_on_error=1:exitcode=66"
start_zookeeper
failed=
for name in $names; do
    "$folder/$program" "$name" "zookeeper://$(zookeeper_address zk)" || failed+=" $name"
done
[ -z "$failed" ] || fail "tests of:$failed"

# Two hosts that hand a lock over, names that are dropped, and a lost connection.
dlockfs=$folder/dlockfs
start_dlockfs A -o idle=1s
start_dlockfs B -o idle=1s
for _ in 1 2 3; do
    hold holder "$dir/A/job"
    expect holder held
    hold waiter "$dir/B/job"
    wait_claims job 2
    release holder
    expect waiter held
    release waiter
    wait_claims job 0
done
wait_until "$deadline" test ! -e "$dir/A/job"
stop_zookeeper
start_zookeeper
comes_free "$dir/A/job"
