#!/bin/bash
# Sequences of calls by processes that fork, duplicate descriptors and are killed, with record locks, OFD locks, flock
# and exclusive open, have the outcomes that a model says, call by call: who is granted, waits, is refused or told of
# a deadlock, who is granted when, and what F_GETLK finds. Where Linux and dlockfs agree the same sequences are made
# on a tmpfs; for what is dlockfs's own, its queue, on a mount only. SEED and COUNT make others, and one again that
# failed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=record_model.sh
. "$tests/system/records/record_model.sh"

start_dlockfs L
start_dlockfs Q
JOBS=2 play agreed 2000 agreed "$dir/tmpfs" "$dir/L"
JOBS=1 play queue 1000 queue "$dir/Q"
played agreed
played queue
