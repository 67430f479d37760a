#!/bin/bash
# Hard links in directories of style = file: several names of one content that are made and removed at once, in directories of
# their own, as the kernel lets only one call at a time into a directory. The servers take a while, so that each call begins before
# another one has ended.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
[ "${STORE:-zookeeper}" = zookeeper ] && server=zk || server=$STORE
start_proxy link "$server"
files_config files
start_dlockfs B --config "$dir/files.ini" --session-timeout 60s
echo 100 >"$dir/link/delay"
store=${store%%://*}://$(<"$dir/link/address")/dlockfs
start_dlockfs A --config "$dir/files.ini" --session-timeout 60s
wait_until "$deadline" at A mkdir 1 2>/dev/null # a session may have to prove itself first
at A bash -c '
    mkdir 2 3 4 5
    echo text >1/name
    for number in 2 3 4 5; do ln 1/name $number/name; done'

at_once() { # CALL ARGUMENT... [-- CALL ARGUMENT...]...
    at A "$python" "$tests/system/files/at_once.py" "$@" | paste -sd' '
}

# No more names than there may be: each change of the content, or of their number, is one transaction about all of them.
links=()
for number in 1 2 3 4 5; do
    links+=(-- link "$number/name" "$number/more")
done
expect_equal "links" "EMLINK EMLINK EMLINK EMLINK ok" "$(at_once "${links[@]:1}" | tr ' ' '\n' | LC_ALL=C sort | paste -sd' ')"
says_at A 6 stat -c %h 1/name
says_at B 6 stat -c %h 1/name

# Each is removed, whichever other one goes at the same time.
expect_equal "removal of two names" "ok ok" "$(at_once unlink 1/name -- unlink 2/name)"
for host in A B; do
    for number in 1 2; do
        no_file "$host" "$number/name" || fail "$number/name was removed, and is there on $host"
    done
    says_at "$host" 4 stat -c %h 3/name
    says_at "$host" text cat 3/name
done
at A bash -c 'rm */*; rmdir 1 2 3 4 5'
says_at B "" ls -A
