#!/bin/bash
# Fencing tokens: they grow from grant to grant, whatever the host and the kind of lock, also over a restart of the
# servers and of a daemon, and when the lock's znode is made anew. fsync and the token ask a majority of the servers, and
# can be interrupted.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

last=0

# grows NAME: the last line of the program is a token, greater than all before.
grows() {
    local token
    token=$(sed -n 's/^token \([0-9]*\)$/\1/p' "$dir/$1.out" | tail -n 1)
    [ -n "$token" ] || fail "$1 got no token: $(tail -n 3 "$dir/$1.out" | paste -sd,)"
    [ "$token" -gt "$last" ] || violation "$1 got $token, not more than $last"
    last=$token
}

# next HOST STEP...: a program on the host takes the lock by these steps; its token has grown, and is the same when
# it asks again.
next() {
    local host=$1
    shift
    comes_free "$dir/$host/job"
    call "$host-next" "$dir/$host/job" "$@" token token close
    expect "$host-next" "close ok"
    expect_equal "tokens of one grant" 1 "$(grep -c '^token' <(sort -u "$dir/$host-next.out"))"
    grows "$host-next"
    finish "$host-next"
}

# has_lines NAME STEP NUMBER: the program has made so many of these steps.
has_lines() {
    [ "$(grep -c "^$2 " "$dir/$1.out")" -ge "$3" ]
}

start_zookeeper
start_dlockfs A --session-timeout 30s
start_dlockfs B --session-timeout 30s

for kind in "open ex" excl "open sh" "open w:0-9" "open-rw ofd-r:5-"; do
    for host in A B; do
        # shellcheck disable=SC2086
        next "$host" $kind
    done
done

# One for each grant through the open file.
call grants "$dir/A/job" open ex token ex token sh token un w:0-9 token w:20-29 token u:0-4 token hold
wait_until "$deadline" has_lines grants token 6
mapfile -t tokens < <(sed -n 's/^token //p' "$dir/grants.out")
[ "${tokens[0]}" = "${tokens[1]}" ] || fail "a lock that is held already has another token"
[ "${tokens[1]}" -lt "${tokens[2]}" ] || violation "a conversion has no new token"
[ "${tokens[2]}" -lt "${tokens[3]}" ] || violation "another kind of lock has no new token"
[ "${tokens[3]}" -lt "${tokens[4]}" ] || violation "a further range has no new token"
[ "${tokens[4]}" = "${tokens[5]}" ] || fail "the release of a part has another token"
grows grants
release grants

# What an ordinary program sees that has no lock, or no lock file.
call plain "$dir/A/plain" open fsync token ex fsync un token fsync hold
expect plain "un ok"
wait_until "$deadline" said plain "token ENODATA"
wait_until "$deadline" has_lines plain fsync 3
expect_equal "without a lock" "fsync ok,token ENODATA,ex ok,fsync ok,un ok,token ENODATA,fsync ok" \
    "$(sed 1d "$dir/plain.out" | paste -sd,)"
release plain
call elsewhere "$dir/elsewhere" open token lease
expect elsewhere "lease ENOTTY"
said elsewhere "token ENOTTY" || fail "$(<"$dir/elsewhere.out")"
finish elsewhere

# The end of the lease is told of what is held through the open file, and of nothing else, also while something else is.
call other "$dir/A/other" open ex hold
expect other "ex ok"
call lease "$dir/A/plain" open lease ex lease un lease w:0-9 lease u:0- lease
finish lease
expect_equal "leases" "open ok,lease ENODATA,ex ok,lease N,un ok,lease ENODATA,w:0-9 ok,lease N,u:0- ok,lease ENODATA" \
    "$(sed -E 's/^lease [0-9]+$/lease N/' "$dir/lease.out" | paste -sd,)"
while read -r left; do
    if [ "$left" -le 12 ] || [ "$left" -gt 30 ]; then
        fail "a lease of $left s, of a session timeout of 30 s"
    fi
done < <(sed -n 's/^lease \([0-9]*\)$/\1/p' "$dir/lease.out")
release other

# The lock's znode is made anew, with numbers from 0.
wait_claims job 0
zookeeper delete /dlockfs/job
next A open ex
stop_dlockfs A
start_dlockfs A --session-timeout 30s
next A excl
restart_zookeeper zk
next B open ex

# Without the servers there is no answer. A signal ends the call, and so does SIGKILL.
call holder "$dir/A/job" open ex await="$dir/paused" alarm=0.5 token alarm=0.5 fsync fsync token hold
call killed "$dir/A/killed" open ex await="$dir/paused" fsync hold
expect holder "ex ok"
expect killed "ex ok"
pause zk
go paused
expect holder "token EINTR"
expect holder "fsync EINTR"
wait_until "$deadline" asleep killed
send_signal killed KILL
wait_until "$deadline" gone killed
release killed
resume zk
expect holder "fsync ok"
wait_until "$deadline" grep -q '^token [0-9]' "$dir/holder.out"
grows holder
release holder

# The last example in C of programs.md, as it stands there.
awk '/^```c$/ { text = ""; inside = 1; next } /^```/ { inside = 0 } inside { text = text $0 "\n" } END { printf "%s", text }' \
    "$source_dir/etc/doc/programs.md" >"$dir/example.c"
DESTDIR=$dir/installed meson install -C "$build" --no-rebuild >"$dir/install.log"
header=$(find "$dir/installed" -name dlockfs.h)
cc -Wall -Werror -I "${header%/*}" -o "$dir/example" "$dir/example.c"
"$dir/example" "$dir/A/job" >"$dir/example.out"
grows example
wait_claims job 0
