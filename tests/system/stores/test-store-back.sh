#!/bin/bash
# ZooKeeper is set back to a backup of its data. What was taken since then is not there any more: a host that knows how far
# the service had come gives its session up, though that lives, and grants nothing for a session timeout. So the holder is
# told first, which knows nothing of all that.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

# shellcheck source=setback.sh
. "$tests/system/stores/setback.sh"

noticed() { # HOST: that the servers were set back
    [ "$(metric "$1" dlockfs_setbacks_total)" = 1 ] && connected "$1"
}

start_zookeeper
start_dlockfs A --session-timeout 6s
start_kept B --session-timeout 6s
for host in A B; do
    wait_until "$deadline" flock "$dir/$host/warm" true
done
stop_zookeeper
cp -r "$dir/zk/data" "$dir/backup"
start_zookeeper
for host in A B; do
    wait_until "$deadline" connected "$host"
done
expect_equal "set back, says a server that was only restarted" "0 0" \
    "$(metric A dlockfs_setbacks_total) $(metric B dlockfs_setbacks_total)"
expect_equal "moratorium" "" "$(status A moratorium)$(status B moratorium)"

keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
keep rival "$dir/B/job" flock
wait_claims job 2
# So far the service does not come again by what A does there before the next daemon of B looks.
for ((number = 0; number < 40; number++)); do
    flock "$dir/B/far-$number" true
done
sleep 1.1 # the journal is told each second how far that is, when something is answered
flock "$dir/B/last" true
highest=$(token_of A fenced)

# The daemon of B ends, as for an update. The next one connects as if it had seen nothing.
dies B
cut=$(lease now)
stop_zookeeper
rm -r "$dir/zk/data"
mv "$dir/backup" "$dir/zk/data"
start_zookeeper
wait_until "$deadline" noticed A
goes_on B
wait_until "$deadline" grep -q "the store has gone back to an earlier state" "$dir/B.log"
expect_equal "moratorium" set_back "$(status B moratorium | cut -d' ' -f1)"
expect_equal "set back" 1 "$(metric B dlockfs_setbacks_total)"
"$dlockctl" --mount "$dir/B" doctor >"$dir/doctor" || true
finds '^error: moratorium: the store has gone back to an earlier state' <"$dir/doctor"
told_first "$cut" holder rival

# The host whose holder it was grants nothing either for that time, whatever it knows: the mark of the root was taken away.
wait_until "$deadline" grep -q "locks of the store are granted again" "$dir/A.log"
release rival
wait_until "$deadline" flock -w 1 "$dir/A/job" true
expect_equal "moratorium" "" "$(status A moratorium)$(status B moratorium)"
# Tokens go on above all that were told before it, also those of a host that has seen nothing of that.
start_dlockfs C --session-timeout 6s
tokens_above "$highest" fenced C A B C
expect_equal "version of names" dlockfs-names=2 "$(zookeeper data /dlockfs | sed -n 1p)"
# Nor does it help to forget what makes up for it.
raised() {
    zookeeper data /dlockfs | finds '^dlockfs-tokens='
}
raised || fail "data of the root: $(zookeeper data /dlockfs)"
highest=$(token_of B fenced)
zookeeper put /dlockfs dlockfs-names=2
wait_until "$deadline" raised
tokens_above "$highest" fenced A C B
never_revived holder
release holder
