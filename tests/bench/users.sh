#!/bin/bash
# What one user can do to others: how long flock(2) of another user takes, in milliseconds, while one rewrites its own files of 4 KB in
# a directory of style = file (texts), changes a record lock beside 500 (ranges), locks a new name each time (names), or makes the
# log long (revoke: its own lock; refused: calls that do not wait, with the audit on); with user_writes on its default, and with
# none (a million). Then, what that leaves on the servers: etcd's database in MB an hour, and ZooKeeper's znodes after an hour of new names.
#
#     tests/bench/users.sh [SECONDS]      (5, of each attack)
#
# An hour is computed from these seconds: etcd does not compact meanwhile. Of new names what is younger than ten seconds stands, and what
# is more than the 500 a second that the host removes, and the 10,000 a minute that the servers do. The load is that of the machine
# before the run.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
requires setpriv --reuid=4301 --regid=4301 --clear-groups true

seconds=${1:-5}
ninja -C "$build" dlockfs >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
program=$(for_others "$tests/bench/users.py")
for limit in default none; do
    printf '%s\n' '[mount]' 'directories = file' 'audit = yes' >"$dir/$limit.ini"
    [ $limit = default ] || echo 'user_writes = 1000000' >>"$dir/$limit.ini"
    printf '%s\n' '[locks "file"]' 'style = file' >>"$dir/$limit.ini"
done
echo "load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) processors, $seconds s each"

# measure KIND: under that attack, what another user sees; sets others and made.
measure() {
    made=-
    if [ "$1" != alone ]; then
        start attack "$python" -u "$program" attack 4301 "$dir/A" "$1" $((seconds + 1))
        expect attack ready
    fi
    read -r -a others <<<"$("$python" "$program" other 4302 "$dir/A" "$seconds")"
    [ "$1" = alone ] || { finish attack && made=$(tail -n 1 "$dir/attack.out"); }
}

start_with() { # LIMIT
    start_dlockfs A --config "$dir/$1.ini"
    : >"$dir/A/another" && chmod 666 "$dir/A/another"
}

etcd_options=(--quota-backend-bytes $((8 << 30)))
start_etcd
declare -A stores=([etcd]=$store)
start_zookeeper
stores[zookeeper]=$store

printf '\n%-10s %-10s %-8s %10s %10s %10s %10s %10s %12s\n' store user_writes attack calls/s "median ms" "p99 ms" "max ms" flocks "MB an hour"
for name in zookeeper etcd; do
    store=${stores[$name]}
    for limit in default none; do
        start_with $limit
        for kind in alone texts ranges names revoke refused; do
            [ $name = zookeeper ] || [[ $kind =~ ^(alone|texts|ranges)$ ]] || continue
            [ $name = zookeeper ] || before=$(etcd_metric etcd_mvcc_db_total_size_in_bytes)
            measure $kind
            growth=-
            [ $name = zookeeper ] || growth=$("$python" -c 'import sys; print(round((float(sys.argv[2]) - float(sys.argv[1])) / 1e6 / float(sys.argv[3]) * 3600))' \
                "$before" "$(etcd_metric etcd_mvcc_db_total_size_in_bytes)" $((seconds + 1)))
            rate=-
            [ "$made" = - ] || rate=$((made / (seconds + 1)))
            printf '%-10s %-10s %-8s %10s %10s %10s %10s %10s %12s\n' $name $limit $kind "$rate" "${others[@]}" "$growth"
            [ $kind != names ] || echo "$limit $rate" >>"$dir/names"
        done
        stop_dlockfs A
    done
done

echo
while read -r limit rate; do
    "$python" - "$limit" "$rate" <<'END'
import sys
limit, rate = sys.argv[1], float(sys.argv[2])
servers = 10000 / 60
with_host = min(rate, 500) * 10 + max(0, rate - 500 - servers) * 3600
print(f"new names, user_writes {limit}: {rate:.0f} a second; znodes after an hour: {with_host:.0f}, "
      f"without the host's removal {max(0, rate - servers) * 3600:.0f}")
END
done <"$dir/names"
