#!/bin/bash
# Lock files (style = file): programs on three hosts make and remove the same names by calls drawn at random, while
# daemons are killed, links are cut for a moment or for longer than a session lives, and answers come too late. No two have a name at a
# time, each call ends as it may, and in the end nothing is left but names whose removal is in doubt.
#
# From the environment: STORE, zookeeper (unless given) or etcd; FAULTS, how many; SEED.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
[ "${STORE:-zookeeper}" = zookeeper ] && server=zk || server=$STORE
direct=$store
# Else a program whose host has lost a name without its noticing would take away what another one has made since.
files_config files 'steal = no'
sed -i 's/^try_limit = .*/try_limit = 1s/' "$dir/files.ini"
for host in A B C; do
    start_proxy "link-$host" "$server"
    store=${direct%%://*}://$(<"$dir/link-$host/address")/dlockfs
    start_kept "$host" --config "$dir/files.ini" --session-timeout 8s
done

seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
mkdir "$dir/state"
start random "$python" -u "$tests/system/files/files_random.py" "$dir/state" "$seed" 3 "$dir/stop" "$dir"/{A,B,C}/files
names=(A B C)
# A fault lasts for a time that nothing tells the end of.
for ((fault = 0; fault < ${FAULTS:-8}; fault++)); do
    host=${names[RANDOM % 3]}
    case $((RANDOM % 6)) in
        0) crash "$host" ;;
        1) restart_kept "$host" ;;
        2) # calls end by their limit, and the session lives
            cut_link "link-$host"
            sleep 1.5
            join_link "link-$host"
            ;;
        3) # the session is lost
            cut_link "link-$host"
            sleep 10
            join_link "link-$host"
            ;;
        4) # the connection breaks
            touch "$dir/link-$host/refuse"
            sleep 0.3
            rm "$dir/link-$host/refuse"
            ;;
        5) # the same, and the daemon ends
            cut_link "link-$host"
            sleep 0.2
            crash "$host"
            join_link "link-$host"
            ;;
    esac
    sleep 1
done
touch "$dir/stop"
finish random
wrong=$(grep -m 1 '^two' "$dir/random.out" || grep -m 1 '^odd' "$dir/random.out" || true)
[[ $wrong != two* ]] || violation "seed $seed: $wrong"
[ -z "$wrong" ] || fail "seed $seed: $wrong"
grep -q "^done.*'mkdir=ok'" "$dir/random.out" || fail "seed $seed: nothing was made"

# What is there, all hosts see, and know to be in doubt.
settled() {
    "$python" - "$dir" >"$dir/settled.out" <<'END'
import os
import sys

folder = os.fsencode(sys.argv[1])
with open(folder + b"/random.out", "rb") as file:
    left = {line.split(b" ")[1] for line in file if line.startswith(b"left")}
lists = {host: set(os.listdir(folder + b"/" + host.encode() + b"/files")) for host in "ABC"}
unsettled = False
for name in set().union(*lists.values()):
    seen = [host for host in lists if name in lists[host]]
    known = repr(name).encode() in left
    if len(seen) < len(lists) or not known:
        print(name, "is seen by", seen, "and was left" if known else "and should not be there")
        unsettled = True
sys.exit(unsettled)
END
}
wait_until "$deadline" settled
for host in A B C; do
    stop_kept "$host"
done
