#!/bin/bash
# The first lock after an idle spell, when the follower that it went through is lost at once: nobody else has the lock before
# the holder is fenced. The longest tick that servers allow, half the session timeout; and the worst phases: the leader's
# pings come shortly before its ticks, so that it may end a session soon after the timeout, and the follower stops shortly
# before the ping with which it would tell of the session.
#
#     test-lease-idle.sh [ROUNDS]    prints how many locks were held twice, and for how long
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

rounds=${1:-2}
hosts_count=8
folders=()
session=4000 # milliseconds, two ticks of lease.sh
tick=$linked_tick

start_slow_ensemble "$session"
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r follower other <<<"${servers[*]/$leader/}"
zookeeper_name=$other
start_dlockfs B --session-timeout 20s --store "zookeeper://$(zookeeper_address "$other")/dlockfs"
for ((i = 1; i <= hosts_count; i++)); do
    start_dlockfs "A$i" --session-timeout "${session}ms" --store "zookeeper://$(zookeeper_address "$follower")/dlockfs"
    folders+=("$dir/A$i/.dlockfs/locks")
done

connected() {
    grep -qx session=connected "$dir/$1/.dlockfs/status"
}

# The time of the next tick (they are multiples of the tick on the clock of all programs), and so much later.
next_tick() {
    echo $((($(lease now) / tick + 1) * tick + $1))
}

held_twice=0
locks=0
for ((round = 1; round <= rounds; round++)); do
    for ((i = 1; i <= hosts_count; i++)); do
        wait_until "$deadline" connected "A$i"
        # So that it exists, and the next one takes no longer than a write.
        wait_until "$deadline" flock -n "$dir/A$i/job-$round-$i" true
    done
    # A leader that stands still for longer than half a tick pings when it goes on, and then each half tick.
    pause "$leader"
    lease signal "$(pid "$leader")" CONT "$(next_tick $((tick * 59 / 40)))"
    sleep $((session / 1000))
    moment=$(next_tick $((2 * tick + tick * 87 / 100)))
    # The hosts' last request for a third of the timeout, before a ping of the leader; then none until after the next one.
    start lister "$python" -u "$tests/lib/lease.py" list $((moment - tick * 105 / 100)) "${folders[@]}"
    start stopper "$python" -u "$tests/lib/lease.py" signal "$(pid "$follower")" STOP $((moment + tick * 6 / 100))
    for ((i = 1; i <= hosts_count; i++)); do
        keep "holder-$round-$i" "$dir/A$i/job-$round-$i" write "$moment"
    done
    finish lister
    finish stopper
    cut=$(time_of stopper sent)
    asked=()
    for ((i = 1; i <= hosts_count; i++)); do
        granted "holder-$round-$i" || continue
        asked[i]=1
        keep "rival-$round-$i" "$dir/B/job-$round-$i" flock
    done
    echo "round $round: ${#asked[@]} locks, the follower stopped $((cut - moment)) ms after they were asked for"
    for ((i = 1; i <= hosts_count; i++)); do
        [ -n "${asked[$i]:-}" ] || continue
        wait_until "$deadline" granted "rival-$round-$i"
        wait_until "$deadline" fenced "holder-$round-$i"
        grant=$(time_of "rival-$round-$i" granted)
        last=$(awk '$1 == "fenced" { print $3; exit }' "$dir/holder-$round-$i.out")
        locks=$((locks + 1))
        echo "lock $i: stop to fence $(($(time_of "holder-$round-$i" fenced) - cut)) ms, stop to grant $((grant - cut)) ms"
        if [ "$last" -ge "$grant" ]; then
            held_twice=$((held_twice + 1))
            echo "lock $i was held twice for $((last - grant)) ms"
        fi
    done
    resume "$follower"
    for ((i = 1; i <= hosts_count; i++)); do
        release "holder-$round-$i"
        [ -z "${asked[$i]:-}" ] || release "rival-$round-$i"
    done
done
echo "$held_twice of $locks locks were held twice"
[ "$locks" -gt 0 ] || fail "no lock was granted in time"
[ "$held_twice" -eq 0 ] || violation "$held_twice of $locks locks were held twice"
