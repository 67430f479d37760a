#!/bin/bash
# The guard does not take a daemon that is busy for one that hangs: many locks are lost with the session of one store, and to tell
# of them takes several times as long as a daemon may be late. The guard sends the signals of on_lost meanwhile; each process gets
# one, however many locks it held; and the lock in another store stays, as does the mount.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=lease.sh
. "$tests/system/lease.sh"

number=600 # a millisecond each; an 80th of the timeout is 150
start_zookeeper other
other=$store
start_zookeeper
cat >"$dir/dlockfs.ini" <<END
[mount]
directories = other
[store]
session_timeout = 12s
[store "other"]
url = $other
session_timeout = 40s
[locks]
on_lost = SIGUSR1
END
LD_PRELOAD=$build/tests/system/slow_polls.so start_dlockfs A --config "$dir/dlockfs.ini"
start_dlockfs B --config "$dir/dlockfs.ini"
keep kept "$dir/A/other/job" flock
wait_until "$deadline" granted kept
keep rival "$dir/B/other/job" flock
start many "$python" "$tests/system/busy.py" "$dir/A" "$number"
expect many held
pause zk
wait_until "$deadline" grep -q '^told' "$dir/many.out"
alive A || fail "the guard has killed the daemon"
expect_equal "what the holder sees" "told EIO EIO" "$(grep '^told' "$dir/many.out")"
# Each once, and by the guard.
wait_until "$deadline" grep -q '^caught' "$dir/many.out"
wait_until "$deadline" grep -q ": the guard has sent SIGUSR1 to process $(pid many), which has lost the lock" "$dir/A.log"
not_fenced kept
not_granted rival
resume zk
wait_until "$deadline" flock -n "$dir/A/again" true
alive A || fail "the daemon has ended"
expect_equal "signals" 1 "$(grep -c '^caught' "$dir/many.out")"
expect_equal "lines of signals" 1 "$(grep -c "SIGUSR1 to process $(pid many)," "$dir/A.log")"
expect_equal "lines of losses" "$number" "$(grep -c ': many[0-9]*: lock lost with the session by process' "$dir/A.log")"
release many kept
wait_until "$deadline" granted rival
release rival
