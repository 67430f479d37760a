#!/bin/bash
# dlockctl hosts: every host of a store is shown, with its locks, and with the settings that differ; a host writes its entry once in a
# session, anew after a loss, and is not shown once it has stopped. doctor warns of a host that is alone, or different.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires command -v jq

# hosts HOST FILTER: what dlockctl shows there of its main store, by jq.
hosts() {
    "$dlockctl" --mount "$dir/$1" hosts --json 2>"$dir/hosts.err" | jq -r ".stores[0] | $2"
}

# shows HOST FILTER VALUE: whether that is what is shown there.
shows() {
    [ "$(hosts "$1" "$2")" = "$3" ]
}

# doctor_says HOST LINE
doctor_says() {
    "$dlockctl" --mount "$dir/$1" doctor >"$dir/doctor.out" || true
    grep -qxF -- "$2" "$dir/doctor.out"
}

# entries HOST: how often it has written one.
entries() {
    sed -n 's/^dlockfs_store_operation_seconds_count{operation="alter"} //p' "$dir/$1/.dlockfs/metrics"
}

scene_of() {
    local scheme=${store%%:*} session
    printf '%s\n' '[store "here"]' 'url = local:' >"$dir/a.ini"
    printf '%s\n' '[store "here"]' 'url = local:' '[locks "cron/*"]' 'slots = 3' '[locks]' 'lock_delay = 1s' >"$dir/b.ini"
    start_proxy link
    start_dlockfs A --config "$dir/a.ini" --session-timeout 4s --store "$(proxied link)"
    wait_until "$deadline" shows A '.hosts | length' 1
    doctor_says A "warning: hosts: no other host uses this root, $scheme /dlockfs; if there are others, compare the url in [store], its path too, with theirs" ||
        fail "$(<"$dir/doctor.out")"
    expect_equal "the local store" "dlockctl: local: its locks are of this host only, so it has no other hosts" "$(<"$dir/hosts.err")"

    start_dlockfs B --config "$dir/b.ini" --session-timeout 4s
    wait_until "$deadline" shows A '.hosts | length' 2
    expect_equal "of itself" "true false []" "$(hosts A '.hosts[] | select(.self) | "\(.host == "'"$(uname -n)"'") \(.differs) \(.differences)"')"
    expect_equal "of the other" '[locks "cron/*"] slots 3 null,[locks] lock_delay 1s 0s' \
        "$(hosts A '.hosts[] | select(.self | not).differences[] | "\(.setting) \(.there) \(.here)"' | sort | paste -sd,)"
    expect_equal "of the other, there" '[locks "cron/*"] slots null 3,[locks] lock_delay 0s 1s' \
        "$(hosts B '.hosts[] | select(.self | not).differences[] | "\(.setting) \(.there) \(.here)"' | sort | paste -sd,)"
    doctor_says A "warning: hosts: on $(uname -n) [locks] lock_delay is 1s, here 0s: it has to be the same on all hosts" || fail "$(<"$dir/doctor.out")"
    "$dlockctl" --mount "$dir/A" hosts >"$dir/table" 2>/dev/null
    grep -q "^$(uname -n): \[locks \"cron/\*\"\] slots is 3, here not set$" "$dir/table" || fail "$(<"$dir/table")"

    # Whose locks those are, told by either.
    hold holder "$dir/A/job"
    expect holder held
    hold waiter "$dir/B/job"
    for host in A B; do
        wait_until "$deadline" shows $host '[.hosts[] | select(.waiters == 1 and .locks == 0)] | length' 1
        expect_equal "the holder, on $host" 1 "$(hosts $host '[.hosts[] | select(.locks == 1 and .waiters == 0)] | length')"
    done
    release waiter holder

    # A reload that changes nothing of that writes nothing.
    expect_equal "entries" "1 1" "$(entries A) $(entries B)"
    cp "$dir/a.ini" "$dir/b.ini"
    send_signal B HUP
    wait_until "$deadline" shows A '[.hosts[] | select(.differs)] | length' 0
    doctor_says A "ok: hosts: 2 use $scheme /dlockfs, with the same settings" || fail "$(<"$dir/doctor.out")"
    printf '%s\n' '[locks]' 'wait_limit = 1h' >>"$dir/b.ini"
    send_signal B HUP
    wait_until "$deadline" eval '[ "$(grep -c "has been read anew" "$dir/B.log")" -eq 2 ]'
    flock "$dir/B/job" true
    expect_equal "entries" "1 2" "$(entries A) $(entries B)"
    wait_until "$deadline" grep -qx hosts=2 "$dir/A/.dlockfs/status"
    wait_until "$deadline" grep -qx 'dlockfs_hosts 2' "$dir/A/.dlockfs/metrics"
    expect_equal "hashes" 1 "$(grep -h '^dlockfs_store_info{scheme="'"$scheme"'",root="/dlockfs",hash=' "$dir"/[AB]/.dlockfs/metrics | sort -u | wc -l)"

    # A session that is lost, and the next one.
    session=$(hosts A '.hosts[] | select(.self).session')
    cut_link link
    wait_until "$deadline" shows B '.hosts | length' 1
    join_link link
    wait_until "$deadline" shows B '.hosts | length' 2
    refused test "$(hosts A '.hosts[] | select(.self).session')" = "$session"
    stop_dlockfs A
    wait_until "$deadline" shows B '.hosts | length' 1
    expect_equal "locks that are shown" "" "$("$dlockctl" --mount "$dir/B" ls --json | jq -r '.locks[].name')"
}

start_zookeeper
play_zookeeper() {
    scene_of
    # What a person has made there is no host.
    zookeeper make /dlockfs/.dlockfs/hosts/00000000000000ff 'host=x version=1'
    expect_equal "hosts" 1 "$(hosts B '.hosts | length')"
    # What another one's session says of itself is its own word only, and nothing that a terminal obeys.
    start stranger "$python" "$tests/lib/zookeeper.py" "$(zookeeper_address)" own /dlockfs/.dlockfs/hosts/ee.host \
        $'host=! self=yes since=1 settings=0\nsetting=[x]%20y=%1B[2J\nsession=0x1 host=zz settings=1\nstore=zookeeper root=/x settings=0\n'
    expect stranger owned
    wait_until "$deadline" shows B '.hosts | map(.host) | index("!") != null' true
    expect_equal "hosts" "2 $(uname -n)" "$(hosts B '"\(.hosts | length) \(.hosts[] | select(.self).host)"')"
    "$dlockctl" --mount "$dir/B" hosts >"$dir/table" 2>/dev/null
    refused grep -q $'\033' "$dir/table"
    release stranger
}
scene on-zookeeper play_zookeeper
start_etcd
scene on-etcd scene_of
scenes_end
