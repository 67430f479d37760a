#!/bin/bash
# flock(2) on the descriptor of an exclusive open converts and releases its lock, as on Linux, also after a restart; and by the key
# exclusive_open such an open waits, is refused, or takes no lock, so that libraries that make their file and then lock it
# exclude each other. On two hosts, of each store.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

printf '%s\n' '[mount]' 'directories = wait refuse open file' '[locks "refuse/*"]' 'exclusive_open = refuse' \
    '[locks "open/*"]' 'exclusive_open = open' '[locks "file"]' 'style = file' >"$dir/hosts.ini"

restarts=0
restarted() {
    [ "$(grep -c ' goes on with version ' "$dir/A.log")" -eq "$restarts" ]
}

try() { # HOST FILE STEP: what it says without waiting
    timeout "$deadline" "$python" "$tests/lib/calls.py" "$dir/$1/$2" open "$3" | tail -n 1
}

converts() {
    # A reader, and then nobody; what holds goes on with the daemon's next process.
    call holder "$dir/A/wait/job" excl await="$dir/shared" sh await="$dir/free" un hold
    expect holder "excl ok"
    expect_equal "beside an exclusive open" "sh-nb EAGAIN" "$(try B wait/job sh-nb)"
    restarts=$((restarts + 1))
    send_signal A USR2
    wait_until "$deadline" restarted
    go shared
    expect holder "sh ok"
    expect_equal "beside LOCK_SH" "sh-nb ok" "$(try B wait/job sh-nb)"
    expect_equal "beside LOCK_SH" "ex-nb EAGAIN" "$(try B wait/job ex-nb)"
    call waiter "$dir/B/wait/job" excl hold
    wait_claims wait/job 2
    go free
    expect holder "un ok"
    expect waiter "excl ok"
    release holder
    expect_equal "the waiter holds" "sh-nb EAGAIN" "$(try A wait/job sh-nb)"
    release waiter
    rm "$dir/shared" "$dir/free"
    # Back to exclusive waits for its turn.
    call reader "$dir/B/wait/job" open sh hold
    expect reader "sh ok"
    call writer "$dir/A/wait/job" excl-nb open sh ex-nb sh ex hold
    expect writer "excl-nb EEXIST"
    expect writer "sh ok"
    expect writer "ex-nb EAGAIN"
    wait_claims wait/job 2
    wait_until "$deadline" asleep writer
    release reader
    expect writer "ex ok"
    release writer
}

# beside LIBRARY DIRECTORY EXPECTED: what a second host gets while the first one holds.
beside() {
    local file=$2/$1
    start first "$python" "$tests/system/calls/made_and_locked.py" "$1" "$dir/A/$file"
    expect first held
    start second "$python" "$tests/system/calls/made_and_locked.py" "$1" "$dir/B/$file"
    if [ "$3" = waits ]; then
        wait_claims "$file" 2
        wait_until "$deadline" asleep second
        release first
        expect second held
    else
        expect second "$3"
        release first
    fi
    release second
}

libraries() {
    local library
    for library in php php-shared java dotnet; do
        beside "$library" wait waits
    done
    beside php refuse "lock EAGAIN" # who is refused finds the file
    beside php-shared refuse held
    beside java refuse "lock EAGAIN"
    beside dotnet refuse "open EEXIST"
    beside php open "lock EAGAIN"
    beside php-shared open held
    beside java open "lock EAGAIN"
    beside dotnet open "lock EAGAIN"
    beside php file "lock EAGAIN"
    beside php-shared file held
    beside java file "lock EAGAIN"
    beside dotnet file "open EEXIST"
}

# An exclusive open that takes no lock goes to no server, keeps what the file has, and is no lock for `doctor`.
just_opens() {
    hold flock "$dir/B/open/job"
    expect flock held
    call opens "$dir/A/open/job" excl write=text excl read ex-nb close
    finish opens
    expect_equal "an exclusive open that takes no lock" "excl ok,write 4,excl ok,read 'text',ex-nb EAGAIN,close ok" \
        "$(paste -sd, "$dir/opens.out")"
    release flock
}

for server in zookeeper etcd; do
    "start_$server"
    start_dlockfs A --config "$dir/hosts.ini"
    start_dlockfs B --config "$dir/hosts.ini"
    converts
    libraries
    just_opens
    stop_dlockfs A
    stop_dlockfs B
done
