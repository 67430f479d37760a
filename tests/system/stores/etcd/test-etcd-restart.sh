#!/bin/bash
# With etcd, too, nobody who holds or waits notices that another program goes on in place of the daemon (SIGUSR2, and kill -9 where
# the service manager keeps its descriptors), nor that the server is started anew: the queues stay, and go on in their order.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../../lib/hold-all.sh
. "$tests/lib/hold-all.sh"
# shellcheck source=../../../lib/kept.sh
. "$tests/lib/kept.sh"

start_etcd
printf '%s\n' '[locks "kept"]' 'keep = 1d' 'handoff = 3' '[locks "told"]' 'on_lost = SIGTERM' >"$dir/A.ini"
start_kept A --session-timeout 30s --config "$dir/A.ini" -v
start_dlockfs B --session-timeout 30s
wait_until "$deadline" survives A yes

restart() {
    local before
    before=$(gone_on A)
    send_signal A USR2
    wait_until "$deadline" gone_on_more A "$before"
}

hold_all
before=$(claims)
keys=$(etcd get --prefix --keys-only /dlockfs/ | grep -vE '/\.dlockfs/(sessions|hosts)/')
for ((i = 0; i < 5; i++)); do
    restart
    crash A
done
restart_kept A
expect_equal "claims after restarts" "$before" "$(claims)"
expect_equal "keys after restarts" "$keys" "$(etcd get --prefix --keys-only /dlockfs/ | grep -vE '/\.dlockfs/(sessions|hosts)/')"

# The server is killed, and is stopped; the daemon is killed while there is none.
restart_etcd
comes_free "$dir/A/new"
kill_etcd
crash A
rejoin_etcd etcd
stop_etcd
rejoin_etcd etcd
comes_free "$dir/A/new"
comes_free "$dir/B/new"
queued flock 4
expect_equal "claims after restarts of the server" "$before" "$(claims)"
all_hold

# The order stays.
release_all crash A
release waits-B waits token
if grep 'lock lost\|giving it up\|expired\|placed late' "$dir/A.log"; then
    fail "something was lost"
fi
stop_kept A
