#!/bin/bash
# The servers' leader stands still for as long as a session lives, and goes on just after a host that was idle has asked for its
# first lock through a follower, which the leader hears no more of: nobody else has the lock before the holder is fenced.
# The leader has not pinged the follower meanwhile, so it does not know of what the follower has answered.
#
#     test-lease-leader-stalled.sh [ROUNDS]    prints how many locks were held twice, and for how long
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

rounds=${1:-2}
hosts_count=4
session=4000 # milliseconds, two ticks of lease.sh
tick=$linked_tick

start_linked_ensemble
servers=(zk1 zk2 zk3)
leader=$(zookeeper_leader 3)
read -r follower other <<<"${servers[*]/$leader/}"
link=$({ links_of "$leader" && links_of "$follower"; } | tr ' ' '\n' | sort | uniq -d)
zookeeper_name=$other
start_dlockfs B --session-timeout 20s --store "zookeeper://$(zookeeper_address "$other")/dlockfs"
for ((i = 1; i <= hosts_count; i++)); do
    start_dlockfs "A$i" --session-timeout "${session}ms" --store "zookeeper://$(zookeeper_address "$follower")/dlockfs"
done

connected() {
    grep -qx session=connected "$dir/$1/.dlockfs/status"
}

# at TIME COMMAND...
at() {
    local wait=$(($1 - $(lease now)))
    [ "$wait" -le 0 ] || sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
    "${@:2}"
}

held_twice=0
for ((round = 1; round <= rounds; round++)); do
    for ((i = 1; i <= hosts_count; i++)); do
        wait_until "$deadline" connected "A$i"
        # So that it exists, and the next one takes no longer than a write.
        wait_until "$deadline" flock -n "$dir/A$i/job-$round-$i" true
    done
    sleep $((session / 1000))
    # Ticks are multiples of the tick on the clock of all programs. What the leader hears of until shortly before one ends
    # two ticks later.
    begin=$((($(lease now) / tick + 2) * tick))
    end=$((begin + 2 * tick))
    start waker "$python" -u "$tests/lib/lease.py" signal "$(pid "$leader")" CONT $((end - 500))
    for ((i = 1; i <= hosts_count; i++)); do
        keep "holder-$round-$i" "$dir/A$i/job-$round-$i" write $((end - 800))
        keep "rival-$round-$i" "$dir/B/job-$round-$i" flock $((end - 100))
    done
    at $((begin - 100)) pause "$leader"
    at $((end - 650)) touch "$dir/$link/mute"
    finish waker
    at $((end - 300)) cut_link "$link"
    for ((i = 1; i <= hosts_count; i++)); do
        wait_until "$deadline" granted "rival-$round-$i"
        grant=$(($(time_of "rival-$round-$i" granted) - end))
        echo "lock $i: the rival has it $grant ms after the end of the session"
        granted "holder-$round-$i" || continue
        wait_until "$deadline" fenced "holder-$round-$i"
        last=$(($(awk '$1 == "fenced" { print $3; exit }' "$dir/holder-$round-$i.out") - end))
        if [ "$last" -ge "$grant" ] && [ "$(($(time_of "holder-$round-$i" granted) - end))" -lt "$grant" ]; then
            held_twice=$((held_twice + 1))
            echo "lock $i was held twice for $((last - grant)) ms"
        fi
    done
    rm "$dir/$link/mute"
    join_link "$link"
    for ((i = 1; i <= hosts_count; i++)); do
        release "holder-$round-$i" "rival-$round-$i"
    done
done
[ "$held_twice" -eq 0 ] || violation "$held_twice locks were held twice"
