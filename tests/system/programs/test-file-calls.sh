#!/bin/bash
# The calls that make, look at and take away lock files have the results that they have on a tmpfs that follows no symbolic
# links either, on one host and on two in turn, each with the same errno; what is different is in file_calls.py, with the reasons.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=programs.sh
. "$tests/system/programs/programs.sh"

mkdir "$dir/reference"
mount -t tmpfs none "$dir/reference"
start_store
start_hosts A B
if [ "$programs_on" = mounts ]; then
    mount -o remount,nosymfollow "$dir/reference"
else
    option=--tmpfs
fi
timeout "$deadline" "$python" "$tests/system/programs/file_calls.py" ${option:+"$option"} "$dir/A/files" "$dir/reference" "$dir/B/files" >"$dir/calls" 2>&1 ||
    fail "calls: $(<"$dir/calls")"
cat "$dir/calls"
