#!/bin/bash
# dlockctl hold takes a lock, or one of several slots, that outlives the command, its daemon and its host: everybody waits behind it,
# kazoo too, until dlockctl give or break, or until its time is over. It is taken once for an owner.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

printf '[locks "kazoo*"]\nrecipe = kazoo\n[locks "reboots"]\nslots = 2\n[locks "pairs"]\nrecipe = curator-any\n' >"$dir/config"
start_zookeeper
start_dlockfs A --session-timeout 4s --config "$dir/config"
start_dlockfs B --session-timeout 4s --config "$dir/config"

on() { # HOST WORD...
    "$dlockctl" --mount "$dir/$1" "${@:2}"
}

shown() { # HOST LOCK TEXT: how many claims are shown so
    grep -c "$3" "$dir/$1/.dlockfs/locks/$2" || true
}

# once_for_its_owner LOCK: on any host; and nobody else has it.
once_for_its_owner() {
    on A hold "$1" --as 'web 1' >"$dir/first"
    grep -qx "$1: held as web 1, token [0-9]*" "$dir/first" || fail "$(<"$dir/first")"
    expect_equal "again, elsewhere" "$(<"$dir/first")" "$(on B hold "$1" --as 'web 1')"
    expect_status 1 on B hold -n "$1" --as web2 2>"$dir/err"
    expect_status 1 flock -n "$dir/A/$1" true
    expect_equal "what is shown" 1 "$(shown B "$1" 'state=held .* hold=web%201 token=[0-9]* .* session=none')"
    on B show "$1" >"$dir/show"
    grep -q 'web 1 (hold)' "$dir/show" || fail "$(<"$dir/show")"
}

scenes() {
    # Slots: the numbers are unique, and one that is given back is the next one's.
    on A hold reboots --as web1 >"$dir/slots"
    on B hold reboots --as web2 >>"$dir/slots"
    expect_equal "slots" "0 1" "$(sed 's/.*slot //' "$dir/slots" | paste -sd' ')"
    expect_status 1 on A hold -n reboots --as web3 2>"$dir/err"
    expect_status 1 flock -n "$dir/B/reboots" true
    on B give reboots --as web1 >"$dir/out"
    expect_equal "the slot that came free" 0 "$(on A run -n reboots printenv DLOCK_SLOT)"
    on A break --yes reboots >"$dir/out"
    on A hold -n reboots --as web3 >"$dir/out"
    on B hold -n reboots --as web4 >"$dir/out"
    on B give reboots --as web3 >"$dir/out"
    on B give reboots --as web4 >"$dir/out"

    # The same owner waits on two hosts: both have it, once.
    hold holder "$dir/B/kazoo"
    expect holder held
    start one "$dlockctl" --mount "$dir/A" hold kazoo --as web1
    start two "$dlockctl" --mount "$dir/B" hold kazoo --as web1
    wait_claims kazoo 3
    release holder
    expect_status 0 finish one
    expect_status 0 finish two
    expect_equal "its holds" 1 "$(shown A kazoo 'hold=web1')"

    # A time: who waits takes it away then, and not before; and it can be set anew.
    on B hold kazoo --as web1 --for 1h >"$dir/out"
    expect_equal "its time" 1 "$(shown A kazoo 'hold=web1 for=3600 ')"
    local begun waited
    begun=$(lease now)
    on A hold kazoo --as web1 --for 2s >"$dir/out"
    flock "$dir/A/kazoo" true
    waited=$(($(lease now) - begun))
    [ "$waited" -ge 1900 ] || violation "a hold of 2 s is over after $waited ms"

    # So does who waited before it was a hold.
    hold holder "$dir/B/kazoo"
    expect holder held
    start one "$dlockctl" --mount "$dir/A" hold kazoo --as web1 --for 1s
    wait_claims kazoo 2
    hold waiter "$dir/B/kazoo"
    wait_claims kazoo 3
    release holder
    expect_status 0 finish one
    expect waiter held
    release waiter
    wait_claims kazoo 0
}

once_for_its_owner kazoo

# Behind it wait a client that is not dlockfs, and both hosts; its own host dies.
mkfifo "$dir/orders"
exec {orders}<>"$dir/orders"
# shellcheck disable=SC2016 # for the shell that is started
start client sh -c 'exec "$@" <"$0"' "$dir/orders" "$python" -u "$tests/system/stores/clients/other_clients.py" "$(zookeeper_address)" 8000
expect client ready
echo 'take 1 lock /dlockfs/kazoo' >&"$orders"
wait_claims kazoo 2
hold waiter "$dir/B/kazoo"
wait_claims kazoo 3
kill_dlockfs A
start_dlockfs A --session-timeout 4s --config "$dir/config"
expect_equal "after its host has died" 1 "$(shown A kazoo 'state=held .* hold=web%201')"
expect_equal "who waits" 2 "$(shown A kazoo 'state=waiting')"
expect_equal "given back" "kazoo: web 1 has given it back" "$(on B give kazoo --as 'web 1')"
expect client '1 held'
expect_equal "once more" "kazoo: web 1 does not hold it" "$(on B give kazoo --as 'web 1')"
echo 'release 1' >&"$orders"
expect waiter held
release waiter
grep -q 'has given back claim' "$dir/B.log" || fail "no line in the log for who gives back"

scenes

# What cannot be held says so.
expect_status 69 on A hold pairs --as web1 2>"$dir/err"
grep -q 'has no holds' "$dir/err" || fail "$(<"$dir/err")"
store=local:
start_dlockfs C
expect_status 69 on C hold kazoo --as web1 2>"$dir/err"
grep -q 'expected a lock in ZooKeeper or etcd' "$dir/err" || fail "$(<"$dir/err")"

# The same on etcd; and its own host has died.
stop_dlockfs A
stop_dlockfs B
start_etcd
printf '[locks "reboots"]\nslots = 2\n' >"$dir/etcd.config"
start_dlockfs A --session-timeout 4s --config "$dir/etcd.config"
start_dlockfs B --session-timeout 4s --config "$dir/etcd.config"
once_for_its_owner etcd
hold waiter "$dir/B/etcd"
wait_claims etcd 2
kill_dlockfs A
start_dlockfs A --session-timeout 4s --config "$dir/etcd.config"
expect_equal "after its host has died" 1 "$(shown A etcd 'state=held .* hold=web%201')"
expect_equal "who waits" 1 "$(shown A etcd 'state=waiting')"
on A give etcd --as 'web 1' >"$dir/out"
expect waiter held
release waiter
scenes
