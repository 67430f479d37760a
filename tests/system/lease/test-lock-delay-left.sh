#!/bin/bash
# What lock_delay leaves of a lost holder is shown, and is taken away after the delay: by who uses the lock next; else by the host
# that lost its session, if its daemon lives; else by the next daemon that starts, or reads of a first
# lock_delay in its configuration. Nothing stays then, however many were lost. A daemon that stops while somebody holds has lost that, one whose holders have released has not.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
requires command -v jq

delay=6 # seconds
hosts_lost=10
locks_each=20
zookeeper_options=(-Dznode.container.checkIntervalMs=1000)
start_zookeeper
config=$dir/dlockfs.ini
printf '[locks]\nlock_delay = %ds\n' "$delay" >"$config"

# below ROOT: a scene has a root of its own.
below() {
    root=$1
    store=zookeeper://$(zookeeper_address)/$root
}

host() { # HOST [TIMEOUT]: two timeouts after its start it looks for what was left
    start_dlockfs "$1" --session-timeout "${2:-4s}" --config "$config"
}

left() { # NUMBER: so many markers there are in all
    [ "$(zookeeper below "/$root" | grep -c '/~held~')" -eq "$1" ]
}

nothing_stays() { # but what every root has, and hosts that are there
    [ "$(zookeeper below "/$root" | grep -vE '^\.dlockfs(/|$)')" = .dlockfs-settled ]
}

lost() { # HOST LOCK
    grep -q '^position=1 state=lost ' "$dir/$1/.dlockfs/locks/$2"
}

of_lost() { # HOST LOCK KEY: of the lost claim
    sed -n "s/^position=1 state=lost .* $3=\([^ ]*\).*/\1/p" "$dir/$1/.dlockfs/locks/$2"
}

# since MILLISECONDS WHAT: whether the delay has passed since then, but for what a host sees later than this program.
waited_since() {
    local waited=$(($(lease now) - $1))
    echo "$2: $waited ms"
    [ "$waited" -ge $((delay * 1000 - 500)) ] || fail "$2: only $waited ms"
}

claims_gone() { # and markers may stand
    [ "$(zookeeper below "/$root" | grep -cE '__WRIT__[0-9]{10}$')" -eq 0 ]
}

fenced_all() {
    grep -qx "fenced=$locks_each" "$dir/A/.dlockfs/status"
}

lost_and_asked_for() {
    local begin holder_pid today since until
    below asked
    host A
    host B 10m

    # The daemon is killed, and nobody on another host has asked for the lock.
    hold holder "$dir/A/shown"
    expect holder held
    wait_until "$deadline" left 1
    holder_pid=$(sed -n 's/.* pid=\([0-9]*\) .*/\1/p' "$dir/B/.dlockfs/locks/shown")
    kill_dlockfs A
    wait_until "$deadline" lost B shown
    release holder
    expect_equal "the lock's line" "lock=shown claims=0 holders=0 lost=1" "$(head -n 1 "$dir/B/.dlockfs/locks/shown")"
    expect_equal "who held" "$holder_pid flock" "$(of_lost B shown pid) $(of_lost B shown command)"
    expect_equal "until when, nobody knows" "" "$(of_lost B shown delay_until)$(of_lost B shown lost_since)"
    grep -qx 'lock=shown claims=0 holders=0 lost=1' "$dir/B/.dlockfs/queues"
    expect_status 1 "$dlockctl" --mount "$dir/B" wait -w 0 shown
    expect_status 1 "$dlockctl" --mount "$dir/B" break --yes shown 2>"$dir/err"
    grep -q 'has lost it, nobody holds it; its delay ends by itself$' "$dir/err" || fail "$(<"$dir/err")"
    begin=$(lease now)
    today=$(date +%s)
    start rival flock "$dir/B/shown" sh -c 'echo held; exec sleep infinity'
    wait_until "$deadline" grep -q ' delay_until=' "$dir/B/.dlockfs/locks/shown"
    since=$(of_lost B shown lost_since)
    until=$(of_lost B shown delay_until)
    [ "$since" -ge "$today" ] || fail "lost since $since, which is before $today"
    if [ $((until - since)) -lt "$delay" ] || [ $((until - since)) -gt $((delay + 1)) ]; then
        fail "from $since until $until"
    fi
    expect_equal "states" "lost waiting" "$(sed -n 's/^position=.* state=\([a-z]*\) .*/\1/p' "$dir/B/.dlockfs/locks/shown" | paste -sd' ')"
    expect_equal "JSON" '["shown",0,1,1,"lost",true,"waiting"]' \
        "$("$dlockctl" --mount "$dir/B" --json show shown |
            jq -c '.locks[0] | [.name, .holders, .lost, .waiters, .claims[0].state, .claims[0].delay_until - .claims[0].lost_since >= 6, .claims[1].state]')"
    "$dlockctl" --mount "$dir/B" show shown >"$dir/show.out"
    grep -q '^POS .* SINCE  DELAY' "$dir/show.out" || fail "$(<"$dir/show.out")"
    grep -qE "^  1  lost  .* $holder_pid .* flock +[0-9]+s +[0-9]s" "$dir/show.out" || fail "$(<"$dir/show.out")"
    "$dlockctl" --mount "$dir/B" ls | finds -E '^shown  *lost .* 1$'
    expect rival held
    waited_since "$begin" "from asking to the grant"
    expect_equal "states" "held" "$(sed -n 's/^position=.* state=\([a-z]*\) .*/\1/p' "$dir/B/.dlockfs/locks/shown")"
    left 1 || fail "there is more than the marker of who holds"
    release rival
    wait_until "$deadline" nothing_stays

    # A clean stop: those who hold are fenced, but live; those who have released are not concerned.
    host A
    hold holder "$dir/A/stopped"
    expect holder held
    flock "$dir/A/released" true
    stop_dlockfs A
    alive holder || fail "the holder was ended"
    begin=$(lease now)
    wait_until "$deadline" lost B stopped
    refused flock -n "$dir/B/stopped" true
    flock -n "$dir/B/released" true
    flock "$dir/B/stopped" true
    waited_since "$begin" "from the stop to the grant"
    release holder
    wait_until "$deadline" nothing_stays

    # A mount that is taken from under them is there for those who have it open; the last one takes the daemon with it, and the
    # kernel mostly does not tell of its release any more.
    host A
    hold holder "$dir/A/lazy"
    expect holder held
    umount --lazy "$dir/A"
    refused flock -n "$dir/B/lazy" true
    release holder
    finish A || fail "the daemon of A ended with an error"
    forget_host A
    flock "$dir/B/lazy" true
    wait_until "$deadline" nothing_stays
}

lost_for_ever() {
    local begin
    below unasked
    host B 10m
    # The session is lost, the daemon lives, and nobody ever asks for the locks again.
    start_proxy link
    store=zookeeper://$(<"$dir/link/address")/$root host A
    start holders "$python" "$tests/lib/many_locks.py" hold "$dir/A" 0 "$locks_each"
    expect holders held
    wait_until "$deadline" left "$locks_each"
    cut_link link
    wait_until "$deadline" fenced_all
    wait_until "$deadline" claims_gone
    release holders
    begin=$(lease now)
    left "$locks_each" || fail "markers were lost with the session"
    join_link link
    wait_until "$deadline" left 0
    waited_since "$begin" "from the connection to the end of the markers"
    wait_until "$deadline" nothing_stays
    stop_dlockfs A

    # The daemon does not come back, and another one is told of lock_delay only when its configuration is read anew.
    host A
    hold holder "$dir/A/reloaded"
    expect holder held
    kill_dlockfs A
    release holder
    stop_dlockfs B
    : >"$dir/later.ini"
    start_dlockfs C --session-timeout 4s --config "$dir/later.ini"
    wait_until "$deadline" claims_gone
    left 1 || fail "the marker has gone with the session"
    cp "$config" "$dir/later.ini"
    begin=$(lease now)
    send_signal C HUP
    wait_until "$deadline" left 0
    waited_since "$begin" "from the reload to the end of the marker"
    wait_until "$deadline" nothing_stays
    stop_dlockfs C
}

# Hosts that do not come back; then one of them does.
many_hosts_lost() {
    local i begin
    below many
    for ((i = 0; i < hosts_lost; i++)); do
        host "H$i"
        start "holders-$i" "$python" "$tests/lib/many_locks.py" hold "$dir/H$i" $((i * locks_each)) $(((i + 1) * locks_each))
    done
    for ((i = 0; i < hosts_lost; i++)); do
        expect "holders-$i" held
    done
    left $((hosts_lost * locks_each)) || fail "not each lock that is held has its marker"
    for ((i = 0; i < hosts_lost; i++)); do
        kill_dlockfs "H$i"
        release "holders-$i"
    done
    host H0 # while the sessions of the others, and its own former one, are not over
    wait_until "$deadline" claims_gone
    begin=$(lease now)
    wait_until "$deadline" left 0
    waited_since "$begin" "from the end of the sessions to that of all markers"
    wait_until "$deadline" nothing_stays
}

scene asked lost_and_asked_for
scene unasked lost_for_ever
scene many many_hosts_lost
scenes_end
