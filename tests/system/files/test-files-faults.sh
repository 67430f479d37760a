#!/bin/bash
# Lock files (style = file), when things fail: the session of a host is lost, the servers cannot be reached,
# processes that made names end, callers are killed or interrupted while they wait, many come at once, limits are met.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
start_proxy link
cat >"$dir/files.ini" <<'END'
[mount]
directories = files kept ended other
[locks "files"]
style = file
try_limit = 2s
on_lost = SIGTERM
[locks "kept"]
style = file
steal = no
[locks "ended"]
style = file
file_owner = process
END
launch() { # HOST URL SESSION
    start_dlockfs "$1" --config "$dir/files.ini" --session-timeout "$3" --store "$2"
}
launch A "$(proxied link)" 30s # longer than its link is cut, on a busy machine, too
launch B "$store" 8s

one_call() { # HOST CALL ARGUMENT...
    (cd "$dir/$1" && timeout "$deadline" "$python" "$tests/lib/one_call.py" "${@:2}")
}
calls() { # EXPECTED HOST CALL ARGUMENT...
    expect_equal "on $2: ${*:3}" "$1" "$(one_call "${@:2}")"
}

# Not to be taken away: what another host has made.
calls ok A mkdir kept/dir
calls ok A excl kept/file
calls EPERM B rmdir kept/dir
calls EPERM B unlink kept/file
calls ok B excl kept/mine
calls EPERM B rename kept/mine kept/file
calls EPERM B rename kept/file kept/free
calls ok B unlink kept/mine
calls ok A rmdir kept/dir
calls ok A unlink kept/file

# A name goes with the process that made it, not before, also when it has got another name since.
start maker "$python" -u "$tests/lib/one_call.py" excl "$dir/A/ended/new" hold
expect maker ok
calls ok A link ended/new ended/linked
calls ok A rename ended/new ended/renamed
calls EEXIST B excl ended/renamed
calls EEXIST B excl ended/linked
release maker
gone_at() { # HOST NAME...
    local name
    for name in "${@:2}"; do
        [ ! -e "$dir/$1/$name" ] || return 1
    done
}
wait_until "$deadline" gone_at B ended/renamed ended/linked
wait_until "$deadline" gone_at A ended/renamed ended/linked
calls ok B excl ended/renamed
wait_until "$deadline" gone_at B ended/renamed # one_call has ended

# Many at once: each name once, whoever makes it.
start many-A "$python" -u "$tests/lib/one_call.py" many "$dir/A/files" 100
start many-B "$python" -u "$tests/lib/one_call.py" many "$dir/B/files" 100
finish many-A
finish many-B
made() {
    sed -n "s/^$2 //p" "$dir/many-$1.out"
}
[ "$(sed 's/ .*//' "$dir"/many-?.out | sort -u | tr '\n' ' ')" = "EEXIST ok " ] || fail "many: $(sort "$dir"/many-?.out | uniq -c | sort -rn | head)"
expect_equal "names that were made" "$({ made A ok; made B ok; } | sort | uniq -c | awk '$1 == 1' | wc -l)" 50
expect_equal "names that are there" "$(at A bash -c 'echo n*' | wc -w)" 50
at A bash -c 'rm n*'
says_at B "" ls -A

# The servers cannot be reached: calls in the directory end in time, with EIO; others do not wait at all.
calls ok A excl files/mine
# cut_off CALL ARGUMENT...: makes the call without the servers, and waits until it waits for them.
cut_off() {
    calls ok A fsync files/mine
    cut_link link
    began=$(lease now)
    start call env -C "$dir/A" "$python" -u "$tests/lib/one_call.py" "$@"
    wait_until "$prompt" asleep call
}
# ends_in_time: it does, and after that the servers can be reached.
ends_in_time() {
    local took
    finish call 10 2>/dev/null || true
    took=$(($(lease now) - began))
    [ "$took" -le 6000 ] || fail "the call took $took ms instead of try_limit"
    join_link link
}
cut_off mkdir files/waits
for name in "" other/; do
    soon ls "$dir/A/$name" >/dev/null
    soon stat "$dir/A/$name" >/dev/null
    soon bash -c ': >"$0"' "$dir/A/${name}lock"
done
alive call || fail "mkdir did not wait: $(<"$dir/call.out")"
ends_in_time
expect call EIO
cut_off ticks excl files/interrupted
ends_in_time
expect call EIO
cut_off excl files/killed
send_signal call KILL
ends_in_time
calls ok A fsync files/mine
for name in waits interrupted killed; do
    wait_until "$deadline" gone_at B "files/$name"
done
calls ok A unlink files/mine

# What is undone is what this host has made, not what another one has made in its place before the answer to the first call came.
stop_dlockfs A
echo 300 >"$dir/link/delay"
launch A "$(proxied link)" 30s
wait_until "$deadline" eval '[ "$(one_call A mkdir files/undone)" = ok ]' # a session may have to prove itself first
calls ok A rmdir files/undone
start call env -C "$dir/A" "$python" -u "$tests/lib/one_call.py" mkdir files/undone
wait_until "$deadline" test -d "$dir/B/files/undone"
cut_link link
expect call EIO
calls ok B rmdir files/undone
calls ok B mkdir files/undone
rm "$dir/link/delay"
join_link link
calls EEXIST A mkdir files/undone # which waits for what is undone
calls ok B rmdir files/undone
! grep -q "files/undone: lock file taken away" "$dir/B.log" || fail "A has removed what B made"

# The session is lost: the names disappear here before another host can make them; who has a file open, or made it, is told.
stop_dlockfs A
launch A "$(proxied link)" 8s
start holder "$python" -u "$tests/lib/one_call.py" keep "$dir/A/files/held"
expect holder held
calls ok A mkdir files/deep
start inner "$python" -u "$tests/lib/one_call.py" keep "$dir/A/files/deep/inner"
expect inner held
start rival "$python" -u "$tests/lib/one_call.py" until "$dir/B/files/held"
wait_until "$deadline" test -s "$dir/rival.out"
cut_link link
wait_until "$deadline" grep -q ^made "$dir/rival.out"
wait_until "$deadline" grep -q ^signal "$dir/holder.out"
wait_until "$deadline" grep -q ^lost "$dir/holder.out"
made=$(time_of rival made)
[ "$(time_of holder lost)" -le "$made" ] || violation "lost on A $(($(time_of holder lost) - made)) ms after it was made on B"
grep -q "^lost EIO EIO POLLERR" "$dir/holder.out" || fail "the open file: $(<"$dir/holder.out")"
grep -q "^signal SIGTERM" "$dir/holder.out" || fail "on_lost: $(<"$dir/holder.out")"
wait_until "$deadline" grep -q "^lost EIO EIO POLLERR" "$dir/inner.out" # its directory is lost, too
wait_until "$deadline" grep -q "^signal SIGTERM" "$dir/inner.out"
soon ls "$dir/A/other" >/dev/null
grep -q "files/held: lock file lost with the session, of process $(pid holder) " "$dir/A.log" || fail "A does not say that held is lost"
join_link link
release holder inner
wait_until "$deadline" eval '[ "$(one_call A excl files/held)" = EEXIST ]'
calls ok B unlink files/held
# A new session of ZooKeeper may have to prove itself for longer than try_limit before anything is said to be made in it.
wait_until "$deadline" eval '[ "$(one_call A excl files/held)" = ok ]'
calls EEXIST B excl files/held
calls ok A unlink files/held
says_at B "" ls -A
