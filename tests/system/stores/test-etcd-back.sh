#!/bin/bash
# etcd is set back to a backup of its data. What was taken since then is not there any more, though all sessions live: who
# waits finds the claim in front gone. Nobody is granted before all who held are told.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

# shellcheck source=setback.sh
. "$tests/system/stores/setback.sh"

all_connected() {
    connected A && connected B && connected C
}

start_etcd
for host in A B C; do
    start_dlockfs "$host" --session-timeout 6s
    wait_until "$deadline" flock "$dir/$host/warm" true
done
kill_etcd
cp -r "$dir/etcd/data" "$dir/backup"
rejoin_etcd etcd
wait_until "$deadline" all_connected
expect_equal "set back, says a server that was only restarted" 0 "$(metric A dlockfs_setbacks_total)"
for ((i = 0; i < 10; i++)); do
    flock "$dir/C/warm" true # so that the revision is not soon reached again
done

keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
for host in B C; do
    keep "rival-$host" "$dir/$host/job" flock
done
wait_claims job 3
sleep 1 # heartbeats show all hosts how far the service has come
highest=$(token_of B fenced)

# The holder hears of nothing for a while.
suspend A
cut=$(lease now)
kill_etcd
rm -r "$dir/etcd/data"
mv "$dir/backup" "$dir/etcd/data"
rejoin_etcd etcd
for host in B C; do
    wait_until "$deadline" grep -q "the store has gone back to an earlier state" "$dir/$host.log"
    expect_equal "moratorium" set_back "$(status "$host" moratorium | cut -d' ' -f1)"
    expect_equal "set back" 1 "$(metric "$host" dlockfs_setbacks_total)"
    not_granted "rival-$host" "the store was set back"
done
awake A
wait_until "$deadline" eval "granted rival-B || granted rival-C"
first=rival-B second=rival-C
granted "$first" || { first=rival-C second=rival-B; }
told_first "$cut" holder "$first"
not_granted "$second"
"$dlockctl" --mount "$dir/B" doctor >"$dir/doctor" || true
! finds moratorium <"$dir/doctor" || fail "doctor: $(<"$dir/doctor")"
release "$first"
wait_until "$deadline" granted "$second"
tokens_above "$highest" fenced C A B
never_revived holder
release "$second" holder
highest=$(token_of B fenced)

# Without any data: who comes new cannot know what stood there, and waits for as long.
keep holder "$dir/A/job" flock
wait_until "$deadline" granted holder
suspend A
cut=$(lease now)
kill_etcd
rm -r "$dir/etcd/data"
rejoin_etcd etcd
start_dlockfs D --session-timeout 6s -o new_root=no
keep rival-D "$dir/D/job" flock
wait_until "$deadline" grep -q "the store's root is new" "$dir/D.log"
expect_equal "moratorium" new_root "$(status D moratorium | cut -d' ' -f1)"
awake A
told_first "$cut" holder rival-D
# Now that is over, and for those who come later as well.
start_dlockfs E --session-timeout 6s -o new_root=no
wait_until "$deadline" flock "$dir/E/other" true
expect_equal "moratorium" "" "$(status E moratorium)"
! grep "the store's root is new" "$dir/E.log" || fail "the root is not settled"
tokens_above "$highest" fenced E D B
never_revived holder
release rival-D holder
