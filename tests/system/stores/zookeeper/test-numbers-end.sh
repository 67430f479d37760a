#!/bin/bash
# At 2^31 ZooKeeper's sequence counter stops: all later claims get the last number, whose order is that of their random names. Three
# hosts contend for locks whose counters are near that end, and one a little below where hosts hold new claims back, so that it
# starts anew in time; alone, and with a lock below that is never idle either. Nobody has a lock that another one has, nobody is
# refused, and everybody goes on.
#
#     test-numbers-end.sh [SECONDS]    so long; before all is over, figures are printed
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
seconds=${1:-12}
numbers "$seconds"

# shellcheck source=numbers.sh
. "$tests/system/stores/zookeeper/numbers.sh"
start_zookeeper
mkdir "$dir/held"
craft /dlockfs/last=2147483600 /dlockfs/soon=$((late - 50)) /dlockfs/deploy=$((late - 50)) /dlockfs/deploy/x=7
for host in A B C D E; do
    start_dlockfs "$host"
done
mkdir "$dir/D/deploy" "$dir/E/deploy" # where it is a directory, it can't be a lock

three=$dir/A,$dir/B,$dir/C
status=0
"$python" "$tests/system/stores/zookeeper/contend.py" "$seconds" 4 "$dir/held" "last=$three" "soon=$three" "deploy=$three" \
    "deploy/x=$dir/D,$dir/E" >"$dir/contend.out" || status=$?
cat "$dir/contend.out"
for lock in last soon deploy; do
    echo "$lock: claims are numbered on from $(zookeeper next "/dlockfs/$lock")"
done
[ "$status" -eq 0 ] || fail "see contend.out"
while read -r lock grants doubles longest; do
    [ "$doubles" -eq 0 ] || fail "$doubles of $grants grants of $lock were double"
    echo "$lock: $grants grants, none double, nobody waited longer than $longest ms"
done <"$dir/contend.out"
for lock in last soon deploy; do
    [ "$(zookeeper next "/dlockfs/$lock")" -lt 1000000 ] || fail "the numbers of $lock have not started anew"
done
