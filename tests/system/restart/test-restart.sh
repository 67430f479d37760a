#!/bin/bash
# SIGUSR2: another program goes on in place of the daemon. Who holds and who waits, in all ways and on two hosts, does not
# notice, and the order of the queue stays, twenty times over; a program that cannot take over changes nothing; a session
# that ends meanwhile is lost as any other.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/hold-all.sh
. "$tests/lib/hold-all.sh"

start_zookeeper
start_proxy link
store=$(proxied link)
# The program of host A is one that can be replaced.
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
printf '%s\n' '[locks "kept"]' 'keep = 1d' 'handoff = 3' '[locks "told"]' 'on_lost = SIGTERM' \
    '[locks "limited"]' 'wait_limit = 1s' >"$dir/A.ini"
start_dlockfs A --session-timeout 20s --config "$dir/A.ini" -v
start_dlockfs B --session-timeout 20s

restarts=0
restarted() {
    [ "$(grep -c ' goes on with version ' "$dir/A.log")" -eq "$restarts" ]
}
restart() {
    restarts=$((restarts + 1))
    send_signal A USR2
    wait_until "$deadline" restarted
}

# given_up TEXT: a restart is given up for that reason, in one line.
given_up() {
    local lines
    lines=$(wc -l <"$dir/A.log")
    send_signal A USR2
    wait_until "$deadline" eval "tail -n +$((lines + 1)) '$dir/A.log' | finds 'this program goes on'"
    tail -n +$((lines + 1)) "$dir/A.log" | grep "^dlockfs: error: .* does not take over: .*$1.*; this program goes on$" >/dev/null ||
        fail "not given up for '$1': $(tail -n 2 "$dir/A.log")"
}

hold_all
# Who looks meanwhile may have to look again, and is told nothing worse.
start looks bash -c 'while "$0" --mount "$1" ls >/dev/null || [ $? -eq 74 ]; do :; done' "$dlockctl" "$dir/A"
start waits-free "$dlockctl" --mount "$dir/A" wait ofd
# A name without a file, and a directory.
mkdir "$dir/A/folder" "$dir/B/folder"
exec 8>"$dir/A/folder/unlinked"
echo text >&8
flock 8
rm "$dir/A/folder/unlinked"
echo "text of a file" >"$dir/A/folder/named"

before=$(claims)
for ((i = 0; i < 17; i++)); do
    restart
done
expect_equal "claims after $restarts restarts" "$before" "$(claims)"
alive looks || fail "dlockctl ls: $(<"$dir/looks.out")"
release looks

# While the connection is cut; a signal to a waiting call then reaches it.
cut_link link
restart
join_link link
restart
expect_equal "claims after a cut" "$before" "$(claims)"

# A wait without the servers is limited from the beginning, long before the lease ends.
hold limit "$dir/B/limited"
expect limit held
call limited "$dir/A/limited" open ex hold
queued limited 2
cut_link link
restart
expect limited "ex ENOLCK" 9
join_link link
queued limited 1
release limit limited

# Programs that cannot take over.
mv "$dlockfs" "$dir/dlockfs.new"
given_up "No such file"
printf '#!/bin/sh\nexit 0\n' >"$dlockfs"
chmod 755 "$dlockfs"
given_up "status 0"
printf '#!/bin/sh\nkill -SEGV $$\n' >"$dlockfs"
given_up "SIGSEGV"
mv "$dir/dlockfs.new" "$dlockfs"
printf '%s\n' '[mount]' 'idle = soon' >"$dir/A.ini"
given_up "A.ini:2"
printf '%s\n' '[store]' 'session_timeout = 1m' '[store "other"]' 'url = local:' >"$dir/A.ini"
given_up "\[store\]"
: >"$dir/A.ini"
restart

# Everything is as it was.
read -r text <"$dir/A/folder/named"
expect_equal "text" "text of a file" "$text"
flock -n 8
all_hold
expect_status 1 flock -n "$dir/B/folder/unlinked" true
exec 8>&-
comes_free "$dir/B/folder/unlinked"

# A signal reaches a call that another program has begun to wait for. The rest goes in the order of the queue.
call late "$dir/A/flock" catch=SIGUSR1 open ex
queued flock 5
restart
send_signal late USR1
expect late "ex EINTR"
queued flock 4
release_all restart
release waits-B
expect_status 0 finish waits-free
if grep 'lost\|giving it up\|expired\|placed late' "$dir/A.log" | grep -v 'connection to ZooKeeper'; then
    fail "something was lost"
fi

# A session that ends while the program changes: holders are told, waiting calls queue again.
start_proxy short
store=$(proxied short)
printf '%s\n' '[locks "told-too"]' 'on_lost = SIGTERM' >"$dir/C.ini"
start_dlockfs C --session-timeout 10s --config "$dir/C.ini"
keep lost "$dir/C/lost" flock
wait_until "$deadline" granted lost
keep behind "$dir/C/lost" flock
wait_claims lost 2
call told "$dir/C/told-too" catch=SIGTERM open ex watch
expect told "ex ok"
cut_link short
send_signal C USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/C.log"
wait_until "$deadline" fenced lost
grep -q '^fenced EIO ' "$dir/lost.out"
wait_until "$deadline" grep -q '^watch .*ERR' "$dir/told.out"
wait_claims lost 0
join_link short
wait_until "$deadline" granted behind
not_fenced behind
never_revived lost
wait_until "$deadline" grep -q '^caught SIGTERM ' "$dir/told.out"

# In the background the daemon leaves the folder to which its command line belongs.
printf '%s\n' '[mount]' 'directories = one' '[store "b"]' 'url = local:' '[store "a"]' 'url = local:' >"$dir/D.ini"
mkdir "$dir/D"
(cd "$dir" && "$dlockfs" --store local: --config D.ini D)
number=$(sed -n 's/^pid=//p' "$dir/D/.dlockfs/status")
process_record "$dir" D "$number"
hold local "$dir/D/one/lock"
expect local held
# In which order the stores stand in the file makes no difference, and what the configuration has made only its maker takes away.
printf '%s\n' '[mount]' 'directories = one two' '[store "a"]' 'url = local:' '[store "b"]' 'url = local:' >"$dir/D.ini"
stranger=(setpriv --reuid=65534 --clear-groups)
mkdir "$dir/D/a"
hold other "$dir/D/a/lock"
expect other held
expect_equal "stores" "a b" "$(sed -n 's/^prefix=//p' "$dir/D/.dlockfs/status" | paste -sd' ')"
test ! -e "$dir/D/two" # and the kernel remembers that
kill -USR2 "$number"
wait_until "$deadline" grep -qz ^DLOCKFS_TAKE_OVER= "/proc/$number/environ"
wait_until "$deadline" test -d "$dir/D/two"
expect_equal "process" "$number" "$(sed -n 's/^pid=//p' "$dir/D/.dlockfs/status")"
expect_status 1 flock -n "$dir/D/one/lock" true
expect_status 1 flock -n "$dir/D/a/lock" true
expect_status 1 "${stranger[@]}" rmdir "$dir/D/two" 2>"$dir/err"
grep -q 'not permitted' "$dir/err"
"${stranger[@]}" mkdir "$dir/D/three"
"${stranger[@]}" rmdir "$dir/D/three"
rmdir "$dir/D/two"
release local other
comes_free "$dir/D/one/lock"
umount "$dir/D"
wait_until "$deadline" gone D

# Unmounted by hand, the daemon ends well.
release lost behind told
umount "$dir/C"
finish C
forget_host C
