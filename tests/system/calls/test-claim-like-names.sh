#!/bin/bash
# Locks and directories whose names read as claims of the lock above them, znodes so named that somebody has made by hand, and
# the version of the names in the root: no lock is lost, held twice, refused or blocked by any of these, and nothing is locked
# where names may be written differently.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

zookeeper_options=(-Dznode.container.checkIntervalMs=500)
start_zookeeper

# What reads as a claim of "deploy": of numbers behind all others, of some that are to come; shared.
names=(job-1200000000 job--2000000000 job-2147483647 0000000001 job-0000000007 x-__READ__0000000002
    _c_00000000-1111-2222-3333-444444444444-__WRIT__0000000003)

# told HOST TEXT
told() {
    grep -qF -- "$2" "$dir/$1.log"
}

# claims_are HOST LOCK NUMBER: as dlockctl shows it.
claims_are() {
    [ "$("$dlockctl" --mount "$dir/$1" show "$2" 2>/dev/null | grep -c ' held \| waiting ')" -eq "$3" ]
}

start_hosts() {
    local host
    for host in A B C; do
        start_dlockfs "$host"
    done
}

stop_hosts() {
    local host
    for host in A B C; do
        stop_dlockfs "$host"
    done
}

# take_names HOST: a user holds locks of these names below "deploy", which is a directory there, and one in such a directory.
take_names() {
    local name
    mkdir "$dir/$1/deploy" "$dir/$1/deploy/job-1200000001"
    for name in "${names[@]}" job-1200000001/inner; do
        hold "user-${name//\//-}" "$dir/$1/deploy/$name"
        expect "user-${name//\//-}" held
    done
}

leave_names() {
    local name
    for name in "${names[@]}" job-1200000001/inner; do
        release "user-${name//\//-}"
    done
}

# exclude LOCK: hosts A and B have it in turn, whatever else stands below its znode, and never together; who does not
# wait is refused as long as one holds, and not after.
exclude() {
    local lock=$1 host first second
    for first in A B; do
        second=$([ $first = A ] && echo B || echo A)
        hold holder "$dir/$first/$lock"
        expect holder held
        hold waiter "$dir/$second/$lock"
        wait_until "$deadline" claims_are A "$lock" 2
        for host in A B; do
            expect_status 1 flock -n "$dir/$host/$lock" true
            expect_status 1 flock -n -s "$dir/$host/$lock" true
        done
        call ranges "$dir/$second/$lock" open w-nb:3-3 get-w:0-9
        finish ranges
        expect_equal "record locks of $second" "open ok,w-nb:3-3 EAGAIN,get-w:0-9 w 0- 0" "$(paste -sd, "$dir/ranges.out")"
        ! said waiter held || violation "$lock is held twice"
        release holder
        expect waiter held
        wait_until "$deadline" claims_are B "$lock" 1
        for host in A B; do
            expect_status 1 flock -n "$dir/$host/$lock" true
        done
        release waiter
        wait_until "$deadline" claims_are B "$lock" 0
        for host in A B; do
            flock -n "$dir/$host/$lock" true
            wait_until "$deadline" claims_are A "$lock" 0
        done
    done
    call free "$dir/A/$lock" open get-w:0-9
    finish free
    expect_equal "$lock is free" "open ok,get-w:0-9 free" "$(paste -sd, "$dir/free.out")"
    if grep -E 'lock lost|taken away|session is given up' "$dir/A.log" "$dir/B.log"; then
        fail "a lock was lost"
    fi
}

# A root that this dlockfs has made: such a name is written so that it is no claim to anybody, and is locked like any other.
start_hosts
exclude deploy
expect_equal "version" dlockfs-names=2 "$(zookeeper data /dlockfs)"
take_names C
expect_equal "claims among the children of deploy" "" "$(zookeeper claims /dlockfs/deploy)"
exclude deploy
for name in "${names[@]}" job-1200000001/inner; do
    claims_are A "deploy/$name" 1 || fail "deploy/$name: $("$dlockctl" --mount "$dir/A" show "deploy/$name")"
done
"$dlockctl" --mount "$dir/A" ls >"$dir/ls.out"
expect_equal "locks that dlockctl lists" $((${#names[@]} + 1)) "$(grep -c deploy/ "$dir/ls.out")"
grep -q "deploy/job--2000000000" "$dir/ls.out"
leave_names

# Made by hand: they end with no session, so they block nobody, and are told.
for name in "${names[@]}"; do
    zookeeper make "/dlockfs/other/$name"
done
zookeeper make /dlockfs/other/job-1200000000/inner
exclude other
told A "is named like a claim, but does not end with a session: it is not counted"
# One that goes, and a claim that comes under its name, is one.
zookeeper delete /dlockfs/other/0000000001
stop_hosts

# A root that somebody has made by hand, or another client, says no version: names are written as in any other.
zookeeper make /other/deploy/x
zookeeper delete /other/deploy
store=zookeeper://$(zookeeper_address)/other
start_hosts
take_names C
zookeeper children /other/deploy | finds -x job-120000000%30 || fail "names in a root without a version are written differently"
exclude deploy
expect_equal "data of the other root" "" "$(zookeeper data /other)"
leave_names
stop_hosts
store=zookeeper://$(zookeeper_address)/dlockfs

# A version that is not known: nothing is locked, and that is said. Then it is one that is known.
start_dlockfs A
hold holder "$dir/A/job"
expect holder held
zookeeper put /dlockfs "dlockfs-names=3"
wait_until "$deadline" told A "the names in /dlockfs are of a version that this dlockfs does not know, expected 2: nothing is locked there"
wait_until "$deadline" told A "job: lock lost with the session"
start_dlockfs B
for host in A B; do
    wait_until "$deadline" grep -q 'store_error=its names are of a version that this dlockfs does not know' "$dir/$host/.dlockfs/status"
    expect_status 71 flock -n "$dir/$host/job" true 2>"$dir/err"
    expect_status 1 "$dlockctl" --mount "$dir/$host" doctor >"$dir/doctor.out"
    grep -q 'its names are of a version that this dlockfs does not know, so nothing is locked there' "$dir/doctor.out"
    expect_equal "lines of $host" 1 "$(grep -c 'of a version that this' "$dir/$host.log")"
done
expect_equal "claims in a root of version 3" "" "$(zookeeper claims /dlockfs/job)"
zookeeper put /dlockfs "dlockfs-names=2"
release holder
comes_free "$dir/A/job"
comes_free "$dir/B/job"
