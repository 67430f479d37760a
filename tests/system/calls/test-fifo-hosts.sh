#!/bin/bash
# Waiters on three hosts, by flock and by exclusive open, get the lock in the order in which they asked.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
for host in A B C; do
    start_dlockfs "$host"
done
hold first "$dir/A/job"
expect first held

# The program that writes the number holds the lock: for flock(1) as its child, for exclusive open itself.
cat >"$dir/open.py" <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
with open(sys.argv[2], "a") as order:
    print(sys.argv[3], file=order)
END
hosts_in_turn=(A B C B A C)
for number in {1..18}; do
    file=$dir/${hosts_in_turn[number % 6]}/job
    if ((number % 2)); then
        start "waiter$number" flock "$file" sh -c 'echo "$2" >>"$1"' - "$dir/order" "$number"
    else
        start "waiter$number" "$python" "$dir/open.py" "$file" "$dir/order" "$number"
    fi
    wait_claims job $((number + 1))
done
[ ! -e "$dir/order" ] || fail "a waiter did not wait"
release first
for number in {1..18}; do
    finish "waiter$number"
done
expect_equal "order" "$(seq -s ' ' 18)" "$(paste -sd' ' "$dir/order")"
