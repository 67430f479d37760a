#!/bin/bash
# A call that does not wait is not refused because of another host's release that returned before, but is still on its way to the
# servers: from the host whose way is longer, every one is later than a call on the other host that was told of it. Nor does
# F_GETLK tell of such a lock. And of many hosts that ask at the same moment one gets the lock, and the others are refused before a short
# job is over.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
near=$store
for host in A B; do
    start_proxy "link-$host"
done
echo 100 >"$dir/link-A/delay"
echo 80 >"$dir/link-B/delay"
for host in A B; do
    store=$(proxied "link-$host")
    start_dlockfs "$host" --session-timeout 60s
done

timeout 280 "$python" "$tests/lib/ping_pong.py" "$dir/A/job" "$dir/B/job" 10 3 flock close record ofd open >"$dir/game.out"
cat "$dir/game.out"
for kind in flock close record ofd open; do
    # A machine that stands still for longer than the grace is not the fault of the host.
    grep -q "^$kind: [01] of 10 refused;" "$dir/game.out" || fail "$kind: refused though nobody held the lock"
done

# looks OPTION...: how often a host that is near finds a lock that A has released.
looks() {
    store=$near start_dlockfs N --session-timeout 60s "$@"
    timeout 60 "$python" "$tests/system/calls/getlk_released.py" "$dir/A/looked" "$dir/N/looked" 10 >"$dir/looked.out"
    stop_dlockfs N
}
looks
grep -q '^[01] of 10 ' "$dir/looked.out" || fail "F_OFD_GETLK: $(<"$dir/looked.out")"
looks -o try_grace=0ms
grep -q '^\([2-9]\|10\) of 10 ' "$dir/looked.out" || fail "nothing was to be mended: $(<"$dir/looked.out")"

# Without the grace each call on B is refused, so it is the grace that does it.
for host in A B; do
    stop_dlockfs "$host"
    store=$(proxied "link-$host")
    start_dlockfs "$host" --session-timeout 60s -o try_grace=0ms
done
timeout 280 "$python" "$tests/lib/ping_pong.py" "$dir/A/job" "$dir/B/job" 10 3 flock >"$dir/game.out"
grep -q "^flock: \([2-9]\|10\) of 10 refused;" "$dir/game.out" || fail "nothing was to be mended: $(<"$dir/game.out")"
for host in A B; do
    stop_dlockfs "$host"
done

# Where the servers are far, a job is over long before the time-out of a round trip that many hosts ask in.
echo 20 >"$dir/link-A/delay"
store=$(proxied link-A)
mounts=()
for ((number = 1; number <= 16; number++)); do
    start_dlockfs "h$number" --session-timeout 60s
    mounts+=("$dir/h$number")
done
timeout 120 "$python" "$tests/bench/together.py" 6 60 "${store#zookeeper://}" "${mounts[@]}" >"$dir/together.out"
cat "$dir/together.out"
read -r -a runs < <(sed -n 's/.* it ran on \(.*\) of them$/\1/p' "$dir/together.out")
[ ${#runs[@]} -eq 6 ] || fail "$(<"$dir/together.out")"
total=0
for count in "${runs[@]}"; do
    total=$((total + count))
done
[ "$total" -le 18 ] || fail "the job ran $total times in 6 rounds"
