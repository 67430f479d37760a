#!/bin/bash
# The leader of etcd finds that the leases of many hosts are over, but cannot end them, as it is cut off from the other members.
# These elect another leader, who gives all leases their full time anew; hosts that were suspended go on, and take locks. The former
# leader comes back, and goes on ending the leases that it had found, sixteen at a time: the hosts have lost none of their locks by
# then, and nobody else gets them. They are cut off before, so that they hear of nothing.
#
# On a busy machine it may take more than one round until the former leader ends them that late.
#
#     test-etcd-revoked-late.sh [ROUNDS]    so many with late ends; prints how many locks were held twice, and for how long
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"

rounds=${1:-1}
hosts_count=4
session=10000 # milliseconds

# grant_leases NAME SECONDS COUNT: those of hosts that do nothing more, one each 4 ms or so.
grant_leases() {
    # shellcheck disable=SC2016
    start "$1" "$python" -c '
import http.client, sys, time
connection = http.client.HTTPConnection(sys.argv[1])
for _ in range(int(sys.argv[3])):
    connection.request("POST", "/v3/lease/grant", "{\"TTL\": %s}" % sys.argv[2])
    connection.getresponse().read()
    time.sleep(0.003)' "$(etcd_address etcd1)" "${@:2}"
}

# at TIME COMMAND...
at() {
    local wait=$(($1 - $(lease now)))
    [ "$wait" -le 0 ] || sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
    "${@:2}"
}

another_leads() {
    [ "$({ etcd_status etcd2 && etcd_status etcd3; } | grep -c ' true,')" -eq 1 ] && etcd_serves etcd2
}

ended_leases() {
    etcd_metric etcd_debugging_lease_revoked_total etcd2
}

start_linked_etcds 3
start_proxy near etcd2
start_dlockfs B --session-timeout 60s --store "etcd://$(etcd_address etcd2),$(etcd_address etcd3)/dlockfs"
for ((i = 1; i <= hosts_count; i++)); do
    start_dlockfs "A$i" --session-timeout "${session}ms" --store "$(proxied near)"
done

held_twice=0
late=0
for ((round = 1; late < rounds; round++)); do
    [ "$round" -le $((rounds + 5)) ] || fail "the former leader has ended too few leases in each round"
    etcd_move_leader etcd1
    for ((i = 1; i <= hosts_count; i++)); do
        comes_free "$dir/A$i/job-$round-$i"
    done
    # The leader looks each half second for leases that are over. A host renews its own each 1.25 s: among those that are over
    # by the same look there are to be sixteen before it.
    grant_leases gone $((session / 1000)) 400
    sleep 1.3
    for ((i = 1; i <= hosts_count; i++)); do
        suspend "A$i"
    done
    suspended=$(lease now)
    finish gone
    # It leads on for a second or two.
    at $((suspended + session - 1400)) cut_link etcd1
    wait_until "$deadline" another_leads
    before=$(ended_leases)
    for ((i = 1; i <= hosts_count; i++)); do
        awake "A$i"
        keep "holder-$round-$i" "$dir/A$i/job-$round-$i" write
    done
    for ((i = 1; i <= hosts_count; i++)); do
        wait_until "$deadline" granted "holder-$round-$i"
        keep "rival-$round-$i" "$dir/B/job-$round-$i" flock
    done
    join_link etcd1
    # The first sixteen requests are given up after 7 s, the leases of the new leader are over after more than 10 s.
    at $((suspended + session + 4500)) cut_link near
    at $((suspended + session + 9000)) true
    ended=$(($(ended_leases) - before))
    echo "$ended leases were ended late"
    [ "$ended" -le 16 ] || late=$((late + 1))
    for ((i = 1; i <= hosts_count; i++)); do
        granted "rival-$round-$i" || continue
        wait_until "$deadline" fenced "holder-$round-$i"
        grant=$(time_of "rival-$round-$i" granted)
        last=$(awk '$1 == "fenced" { print $3; exit }' "$dir/holder-$round-$i.out")
        if [ "$last" -ge "$grant" ]; then
            held_twice=$((held_twice + 1))
            echo "lock $i was held twice for $((last - grant)) ms"
        fi
    done
    join_link near
    for ((i = 1; i <= hosts_count; i++)); do
        release "holder-$round-$i" "rival-$round-$i"
    done
done
[ "$held_twice" -eq 0 ] || violation "$held_twice locks were held twice"
