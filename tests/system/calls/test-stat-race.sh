#!/bin/bash
# A name that is looked up by others at the very moment at which it is created is there afterwards.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_dlockfs A --store local:
expect_equal "names that are open and cannot be found" 0 "$(timeout "$deadline" "$python" "$tests/system/calls/stat_race.py" "$dir/A" 400)"
