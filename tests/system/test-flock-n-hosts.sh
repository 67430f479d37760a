#!/bin/bash
# A call that does not wait is not refused because of another host's release that returned before, but is still on its way to the
# servers: from the host whose way is longer, every one is later than a call on the other host that was told of it.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_zookeeper
for host in A B; do
    start_proxy "link-$host"
done
echo 100 >"$dir/link-A/delay"
echo 80 >"$dir/link-B/delay"
for host in A B; do
    store=$(proxied "link-$host")
    start_dlockfs "$host" --session-timeout 60s
done

timeout 280 "$python" "$tests/system/ping_pong.py" "$dir/A/job" "$dir/B/job" 10 3 flock close record ofd open >"$dir/game.out"
cat "$dir/game.out"
for kind in flock close record ofd open; do
    # A machine that stands still for longer than the grace is not the fault of the host.
    grep -q "^$kind: [01] of 10 refused;" "$dir/game.out" || fail "$kind: refused though nobody held the lock"
done

# Without the grace each call on B is refused, so it is the grace that does it.
for host in A B; do
    stop_dlockfs "$host"
    store=$(proxied "link-$host")
    start_dlockfs "$host" --session-timeout 60s -o try_grace=0ms
done
timeout 280 "$python" "$tests/system/ping_pong.py" "$dir/A/job" "$dir/B/job" 10 3 flock >"$dir/game.out"
grep -q "^flock: \([2-9]\|10\) of 10 refused;" "$dir/game.out" || fail "nothing was to be mended: $(<"$dir/game.out")"
