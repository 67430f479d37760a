#!/bin/bash
# With min_hold nobody on any host gets a lock before its time is over, counted from the grant: whether its holder has released it, was
# killed, or its host has died or is cut off, while it held or after. It rests meanwhile, as all hosts show. A host that looks only after
# the time does not wait any more. So it is where only dlockctl run --min-hold asks for the time. So on ZooKeeper, on etcd, and on one host alone, whose daemon may be killed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

rest=8 # seconds
rounded=1500 # milliseconds: etcd counts whole seconds
config=$dir/dlockfs.ini
printf '[locks]\nmin_hold = %ds\ntry_limit = 1m\n[locks "own*"]\nmin_hold = 0ms\n' "$rest" >"$config"

declare -A since # by lock: when the lock was not granted yet

begin() { # LOCK
    since[$1]=$(lease now)
}

over() { # LOCK: its time is, by any count
    [ "$(lease now)" -gt $((since[$1] + rest * 1000 + rounded)) ]
}

# kept_out HOST LOCK: a call that does not wait is refused, unless the time is over.
kept_out() {
    local got
    got=$(flock -n "$dir/$1/$2" "$python" "$tests/lib/lease.py" now) || return 0
    rested "$2" "$got"
}

rested() { # LOCK MILLISECONDS: it was granted then
    local waited=$(($2 - since[$1]))
    echo "$1: $waited ms from grant to grant"
    [ "$waited" -ge $((rest * 1000)) ] || violation "$1 was granted after $waited ms"
}

rests() { # HOST LOCK
    grep -q '^position=1 state=resting .* delay_until=' "$dir/$1/.dlockfs/locks/$2"
}

held() { # HOST LOCK
    grep -q '^position=1 state=held ' "$dir/$1/.dlockfs/locks/$2"
}

waits() { # HOST LOCK: somebody does
    grep -q '^position=2 state=waiting ' "$dir/$1/.dlockfs/locks/$2"
}

no_claims() { # HOST LOCK: its holder's session is over
    grep -q '^lock=.* claims=0 ' "$dir/$1/.dlockfs/locks/$2"
}

await() { # HOST LOCK: a call that waits for it
    keep "waiter-$2" "$dir/$1/$2" flock
}

awaited() { # LOCK
    wait_until "$deadline" granted "waiter-$1"
    rested "$1" "$(time_of "waiter-$1" granted)"
    release "waiter-$1"
}

quick() { # HOST LOCK: a job that is over at once
    begin "$2"
    flock -n "$dir/$1/$2" true || fail "the lock $2 is not free"
}

# job HOST LOCK COMMAND...: one that asks for the time by itself. The lock has none.
job() {
    begin "$2"
    "$dlockctl" --mount "$dir/$1" run --min-hold "${rest}s" "$2" -- "${@:3}"
}

hosts() {
    local host
    for host in A B C; do
        start_dlockfs "$host" --session-timeout 4s --config "$config"
    done
    start_proxy "link-D"
    store=$(proxied link-D) start_dlockfs D --session-timeout 4s --config "$config"
}

on_several_hosts() {
    hosts
    quick A released
    wait_until "$deadline" rests A released
    wait_until "$deadline" rests B released
    "$dlockctl" --mount "$dir/B" show released | finds -E '^  1  resting .* flock .*[0-9]s '
    expect_status 1 "$dlockctl" --mount "$dir/B" wait -w 0 released
    expect_status 66 "$dlockctl" --mount "$dir/A" revoke released 2>"$dir/err"
    kept_out A released
    kept_out B released
    await B released

    begin killed
    keep holder "$dir/A/killed" excl
    wait_until "$deadline" granted holder
    send_signal holder KILL
    kept_out A killed
    kept_out B killed
    await B killed

    job A own-released true
    kept_out A own-released
    kept_out B own-released
    await B own-released
    # Whoever comes after it has no least time.
    "$dlockctl" --mount "$dir/A" run own-quick true
    "$dlockctl" --mount "$dir/B" run -n own-quick true

    begin own-dead
    start own "$dlockctl" --mount "$dir/A" run --min-hold "${rest}s" own-dead -- sleep infinity
    wait_until "$deadline" held A own-dead
    await B own-dead
    job A own-late true

    quick D cut
    begin cut-held
    keep held "$dir/D/cut-held" flock
    wait_until "$deadline" granted held
    cut_link link-D
    await B cut
    await B cut-held

    begin dead
    keep dead "$dir/A/dead" flock
    wait_until "$deadline" granted dead
    kill_dlockfs A
    await B dead
    kept_out C dead
    kept_out C own-dead
    wait_until "$deadline" no_claims C own-late
    kept_out C own-late
    await C own-late

    awaited released
    awaited killed
    awaited cut
    awaited cut-held
    awaited dead
    awaited own-released
    awaited own-dead
    awaited own-late
    expect_status 75 finish own
    release held dead
    # Nobody asks for it before the time is over, so nobody counts: the searches of the daemons for such locks are over, too.
    start_dlockfs E --session-timeout 4s --config "$config"
    quick E unseen
    kill_dlockfs E
    wait_until "$deadline" no_claims C unseen
    wait_until "$deadline" over unseen
    flock -n "$dir/C/unseen" true || fail "who comes after the time waits for it, too"
    # Whoever breaks it gets it at once.
    wait_until "$deadline" rests C unseen
    "$dlockctl" --mount "$dir/C" break --yes unseen
    wait_until "$deadline" flock -n "$dir/B/unseen" true
    stop_dlockfs B
    stop_dlockfs C
    join_link link-D
    stop_dlockfs D
    release link-D
}

# A clean stop ends nothing on other hosts.
on_stop() {
    start_dlockfs A --session-timeout 4s --config "$config"
    start_dlockfs B --session-timeout 4s --config "$config"
    quick A stopped
    stop_dlockfs A
    kept_out B stopped
    await B stopped
    awaited stopped
    stop_dlockfs B
}

on_a_restart() { # LOCK
    start_kept A --session-timeout 1m --config "$config"
    quick A "$1-rests"
    begin "$1-held"
    keep holder "$dir/A/$1-held" flock
    wait_until "$deadline" granted holder
    # Who has said before a restart for how long the lock is to rest gets it after that.
    keep before "$dir/A/own-$1" flock
    wait_until "$deadline" granted before
    start own "$dlockctl" --mount "$dir/A" run --min-hold "${rest}s" "own-$1" true
    wait_until "$deadline" waits A "own-$1"
    crash A
    begin "own-$1"
    release holder before
    finish own
    kept_out A "own-$1"
    kept_out A "$1-rests"
    kept_out A "$1-held"
    await A "$1-rests"
    await A "$1-held"
    await A "own-$1"
    restart_kept A
    awaited "$1-rests"
    awaited "$1-held"
    awaited "own-$1"
    stop_kept A
}

on_zookeeper() {
    start_zookeeper
    scene stop on_stop
    scene restart on_a_restart zookeeper
    on_several_hosts
    scenes_end
}

on_etcd() {
    start_etcd
    scene stop on_stop
    on_several_hosts
    scenes_end
}

scene zookeeper on_zookeeper
scene etcd on_etcd
store=local: scene local on_a_restart local
scenes_end
