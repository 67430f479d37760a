#!/bin/bash
# Somebody who waits for one lock does not delay anything else in the directory: stat, ls, open, locking, unlink, mkdir and
# rmdir, and no process is ever in the state D, in which nothing can end it.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# The threads of this test that are in state D because of a request to a file system: asked twice, since being there for a
# moment is normal.
stuck() {
    local process thread
    while read -r process thread; do
        if grep -q 'fuse_\|request_wait_answer\|lookup_\|path_openat\|iterate_dir' \
            "/proc/$process/task/$thread/stack" 2>/dev/null; then
            echo "$thread"
        fi
    done < <(ps -eLo stat=,pid=,lwp=,ppid= | awk -v test=$$ '
        { parent[$2] = $4 }
        $1 ~ /^D/ { of[$3] = $2 }
        END {
            for (thread in of) {
                for (process = of[thread]; process in parent && process != test; process = parent[process]);
                if (process == test)
                    print of[thread], thread
            }
        }')
}

never_stuck() {
    local before after
    before=$(stuck)
    [ -n "$before" ] || return 0
    sleep 0.3
    after=$(stuck)
    [ -z "$(comm -12 <(sort <<<"$before") <(sort <<<"$after"))" ] || fail "in state D: $after"
}

everything_else_works() { # MOUNT
    exec 7>"$1/other"
    soon stat "$1/other" >"$dir/stat.out"
    soon stat "$1/job" >"$dir/stat.out"
    soon ls -la "$1" >"$dir/ls.out"
    grep -q job "$dir/ls.out" || fail "ls does not show the file that is waited for"
    soon flock -n "$1/other" true
    soon flock -n 7
    soon sh -c ': >"$1/new"; : >>"$1/new"; test ! -e "$1/never"' - "$1"
    soon "$python" -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL))' "$1/third"
    soon rm -f "$1/other"
    soon mkdir "$1/folder"
    soon rmdir "$1/folder"
    # The waited-for file itself can be opened and looked at, tried, and its name removed.
    soon sh -c ': <"$1"' - "$1/job"
    expect_status 1 soon flock -n "$1/job" true
    call try "$1/job" excl-nb
    wait_until "$prompt" gone try
    expect_equal "exclusive open without waiting" "excl-nb EEXIST" "$(<"$dir/try.out")"
    exec 7>&-
    never_stuck
}

start_zookeeper
start_dlockfs A
start_dlockfs B
store=local:
start_dlockfs L

for host in A L; do
    holder=$dir/$host/job
    [ $host = L ] || holder=$dir/B/job
    call holder "$holder" open ex hold
    expect holder "ex ok"

    for kind in "open ex" excl; do
        for number in 1 2 3; do
            # shellcheck disable=SC2086
            call "waiter$number" "$dir/$host/job" $kind hold
        done
        for number in 1 2 3; do
            wait_until "$deadline" asleep "waiter$number"
        done
        everything_else_works "$dir/$host"
        never_stuck
        for number in 1 2 3; do
            kill -KILL "$(pid "waiter$number")"
            wait_until "$prompt" gone "waiter$number"
        done
    done

    # The name is taken away while somebody waits for it: the wait goes on, and the lock is still the name.
    call waiter1 "$dir/$host/job" excl hold
    wait_until "$deadline" asleep waiter1
    soon rm -f "$dir/$host/job"
    call waiter2 "$dir/$host/job" open ex hold
    wait_until "$deadline" asleep waiter2
    expect_status 1 soon flock -n "$dir/$host/job" true
    release holder
    expect waiter1 "excl ok"
    if said waiter2 "ex ok"; then
        violation "two hold the lock after its name was removed"
    fi
    release waiter1
    expect waiter2 "ex ok"
    release waiter2
done
