#!/bin/bash
# Texts in directories of style = file that are written again and again are stored ten times a second, and before anybody else may
# look: three writers on two hosts, each of which finds what the last one wrote, however it released the lock; a writer, and a
# daemon, that is killed in the midst of it. A name of another host is not taken to be there for such a text.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
files_config files
start_proxy link
start_kept A --config "$dir/files.ini" --session-timeout 60s --store "$(proxied link)"
start_dlockfs B --config "$dir/files.ini" --session-timeout 60s

late() { # WHAT HOST ARGUMENT...
    timeout "$deadline" "$python" "$tests/system/files/late_texts.py" "$1" "$dir/$2" "${@:3}"
}

# stores HOST: how many alterations it has asked for so far.
stores() {
    sed -n 's/^dlockfs_store_operation_seconds_count{.*operation="alter".*} //p' "$dir/$1/.dlockfs/metrics"
}

at A touch often
before=$(stores A)
took=$(late count A often 1000)
stored=$(($(stores A) - before))
[ "$stored" -le "$((took / 100 + 5))" ] || fail "1000 writes in $took ms were stored $stored times"
says_at B "$(printf %020d 999)" cat often
expect_equal "time of the file on both hosts" "$(at A stat -c %Y.%y often)" "$(at B stat -c %Y.%y often)"

for by in flock range beside close mkdir rename; do
    at A touch "$by" "$by.free"
    for writer in A1 A2 B1; do
        start "$by-$writer" "$python" "$tests/system/files/late_texts.py" rewrite "$dir/${writer%?}" "$by" 6 "$dir/truth-$by" "$by"
    done
done
for by in flock range beside close mkdir rename; do
    for writer in A1 A2 B1; do
        wait_until "$deadline" gone "$by-$writer"
        [ ! -s "$dir/$by-$writer.out" ] || fail "$writer: $(cat "$dir/$by-$writer.out")"
    done
    expect_equal "the last text, $by" 360 "$(cat "$dir/truth-$by")"
done

at A touch killed
for round in 1 2 3; do
    former=$(cat "$dir/truth-killed" 2>/dev/null || echo 0)
    start "endless-$round" "$python" "$tests/system/files/late_texts.py" endless "$dir/A" killed "$dir/truth-killed"
    has_written() { [ "$(cat "$dir/truth-killed")" -gt "$((former + 50))" ]; }
    wait_until "$deadline" has_written
    kill -KILL "$(pid "endless-$round")"
    late check B killed "$dir/truth-killed"
done

# The next daemon, or program, stores what the one before has told its writer.
replace() {
    send_signal "$1" USR2
    wait_until "$deadline" grep -q " goes on with version " "$dir/$1.log"
}

for end in "crash A B" "replace B A"; do
    read -r call host other <<<"$end"
    start "$call" "$python" "$tests/system/files/late_texts.py" endless "$dir/$host" killed "$dir/truth-killed"
    former=$(cat "$dir/truth-killed")
    wait_until "$deadline" has_written
    "$call" "$host"
    kill -KILL "$(pid "$call")"
    late check "$other" killed "$dir/truth-killed"
done

# Whether another host's name is there only the servers know, also while a text for it waits for them: its writer goes on then. One
# that has nothing to wait for when the link is cut fails, and begins again.
goes_on_or_ends() { # NUMBER
    gone theirs || [ "$(cat "$dir/truth-theirs")" -gt "$1" ]
}

at B touch theirs
begins() {
    rm -f "$dir/truth-theirs"
    start theirs "$python" "$tests/system/files/late_texts.py" endless "$dir/A" theirs "$dir/truth-theirs"
    wait_until "$deadline" test -s "$dir/truth-theirs"
    cut_link link
    sleep 1 # what was under way when it was cut is over
    wait_until "$deadline" goes_on_or_ends "$(cat "$dir/truth-theirs")"
}
begins
while gone theirs; do
    join_link link
    wait_until "$deadline" at A test -e theirs
    begins
done
at B rm theirs
refused at A stat theirs
join_link link
wait_until "$deadline" no_file A theirs
release theirs
