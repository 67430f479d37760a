#!/bin/bash
# Locks of two hosts in etcd: all kinds exclude one another, record locks by their ranges, tokens grow, fsync asks the servers, and what
# dlockctl and .dlockfs show and do is as with ZooKeeper. A second store below a prefix: each lock is in its own.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/lease.sh
. "$tests/lib/lease.sh"
# shellcheck source=../../../lib/terminal.sh
. "$tests/lib/terminal.sh"
requires command -v jq

start_etcd
start_dlockfs A --session-timeout 20s
start_dlockfs B --session-timeout 20s

ctl() {
    "$dlockctl" --mount "$dir/B" "$@"
}

# number NAME: the token that the program has printed last.
number() {
    sed -n 's/^token //p' "$dir/$1.out" | tail -n 1
}

# flock: exclusive, shared, not waited for; who waits gets it in the order in which they came.
hold first "$dir/A/job"
expect first held
expect_status 1 flock -n "$dir/A/job" true
expect_status 1 flock -n "$dir/B/job" true
expect_status 1 flock -n -s "$dir/B/job" true
for host in B A B; do
    queue+=("waiter-${#queue[@]}")
    hold "${queue[-1]}" "$dir/$host/job"
    wait_claims job $((${#queue[@]} + 1))
done
release first
for name in "${queue[@]}"; do
    expect "$name" held
    wait_claims job ${#queue[@]}
    queue=("${queue[@]:1}")
    for other in "${queue[@]}"; do
        ! said "$other" held || violation "$other holds beside $name"
    done
    release "$name"
done
wait_claims job 0
hold reader-A -s "$dir/A/job"
expect reader-A held
hold reader-B -s "$dir/B/job"
expect reader-B held
expect_status 1 flock -n "$dir/B/job" true
hold writer "$dir/A/job"
wait_claims job 3
hold late -s "$dir/B/job"
wait_claims job 4
release reader-A reader-B
expect writer held
! said late held || violation "a reader holds beside a writer"
release writer
expect late held
release late
# A release is seen by the next call on that host.
comes_free "$dir/A/job"
for ((i = 0; i < 50; i++)); do
    flock -n "$dir/A/job" true
done

# However often a lock is taken, its claims use the same few keys: etcd keeps each in its index until the next compaction.
start keys etcdctl watch --prefix /dlockfs/often/
takes() {
    [ "$(grep -c '^PUT' "$dir/keys.out")" -ge "$1" ]
}
watches_keys() {
    flock "$dir/A/often" true
    takes 1
}
wait_until "$deadline" watches_keys
for host in A B A; do
    "$python" -c '
import fcntl, sys
with open(sys.argv[1], "w") as file:
    for _ in range(1000):
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)' "$dir/$host/often"
done
wait_until "$deadline" takes 3000
release keys
used=$(grep -a '^/dlockfs/often/' "$dir/keys.out" | sort -u | wc -l)
[ "$used" -le 20 ] || fail "$used keys for one lock that was taken 3000 times"

# Exclusive open.
call open-A "$dir/A/open" excl hold
expect open-A "excl ok"
call open-B "$dir/B/open" excl-nb excl hold
wait_claims open 2
expect open-B "excl-nb EEXIST"
expect_status 1 flock -n "$dir/B/open" true
release open-A
expect open-B "excl ok"
release open-B

# Record locks, whose ranges are written into the data of their claims: split, converted, and looked at from the other host.
call ranges "$dir/A/ranges" open w:0-9 r:20-29 u:4-5 await="$dir/convert" r:0-3 await="$dir/more" w:20-29 hold
expect ranges "u:4-5 ok"
ask_ranges() {
    call ask "$dir/B/ranges" open "$@"
    finish ask
}
comes_apart() {
    ask_ranges w-nb:4-5
    said ask "w-nb:4-5 ok"
}
wait_until "$deadline" comes_apart
ask_ranges w-nb:0-0 r-nb:3-3 w-nb:6-9 r-nb:20-25 w-nb:29-29 w-nb:10-19 get-w:0-100
for line in "w-nb:0-0 EAGAIN" "r-nb:3-3 EAGAIN" "w-nb:6-9 EAGAIN" "r-nb:20-25 ok" "w-nb:29-29 EAGAIN" "w-nb:10-19 ok" \
    "get-w:0-100 w 0-3 0"; do
    expect ask "$line"
done
etcd get --prefix --keys-only /dlockfs/ranges/ | finds '/data$' || fail "no key of data"
go convert
expect ranges "r:0-3 ok"
reads() {
    ask_ranges r-nb:0-3
    said ask "r-nb:0-3 ok"
}
wait_until "$deadline" reads
# Who converts waits for who holds, not for who waits.
call reader "$dir/B/ranges" open r-nb:20-29 await="$dir/leave" u:20-29 hold
expect reader "r-nb:20-29 ok"
go more
sleep 0.2
! said ranges "w:20-29 ok" || violation "converted beside a reader"
go leave
expect ranges "w:20-29 ok"
release ranges reader
wait_claims ranges 0
expect_equal "keys that are left" "" "$(etcd get --prefix --keys-only /dlockfs/ranges/)"

# A cycle of two hosts: one of them is told, at the other's cost of nothing.
call cycle-A "$dir/A/cycle" open w:0-0 await="$dir/cross" w:1-1 hold
call cycle-B "$dir/B/cycle" open w:1-1 await="$dir/cross" w:0-0 close hold
expect cycle-A "w:0-0 ok"
expect cycle-B "w:1-1 ok"
go cross
told_of_cycle() {
    said cycle-A "w:1-1 EDEADLK" || said cycle-B "w:0-0 EDEADLK"
}
wait_until "$deadline" told_of_cycle
if said cycle-A "w:1-1 EDEADLK"; then
    release cycle-A
    expect cycle-B "w:0-0 ok"
else
    expect cycle-A "w:1-1 ok"
fi
release cycle-A cycle-B

# Tokens grow from grant to grant, over hosts and kinds, also when nothing of the lock is left in between; fsync answers.
last=0
for host in A B; do
    for kind in "open ex" excl "open sh" "open w:0-9" "open-rw ofd-r:5-"; do
        comes_free "$dir/$host/tokens"
        # shellcheck disable=SC2086 # a kind is several steps
        call next "$dir/$host/tokens" $kind token fsync token
        finish next
        expect next "fsync ok"
        expect_equal "tokens of one grant" 1 "$(grep '^token' "$dir/next.out" | sort -u | wc -l)"
        [ "$(number next)" -gt "$last" ] || fail "$kind on $host got $(number next), not more than $last"
        last=$(number next)
        wait_claims tokens 0
    done
done
expect_equal "token by dlockctl" yes \
    "$("$dlockctl" run "$dir/A/tokens" sh -c '[ "$DLOCK_TOKEN" -gt "$0" ] && echo yes' "$last")"

# What is shown: names that are not UTF-8, with all that a key may have, and locks below directories.
mkdir -p "$dir"/{A,B}/folder/below
odd=$'odd\xff\n%name \xc3\xa9'
for lock in "$odd" folder/below/job "folder/$odd"; do
    hold shown "$dir/A/$lock"
    expect shown held
    expect_status 1 flock -n "$dir/B/$lock" true
    ctl show "$lock" >"$dir/show"
    expect_equal "claims of $lock" 1 "$(grep -c " held .* $(pid shown) .*flock" "$dir/show")"
    expect_equal "the file" "$(grep -c '^position=1 state=held mode=exclusive' "$dir/B/.dlockfs/locks/$lock")" 1
    release shown
    comes_free "$dir/B/$lock"
done
hold shown "$dir/A/folder/job"
hold waits "$dir/A/folder/below/job"
expect shown held
expect waits held
ctl ls >"$dir/ls"
grep -q '^folder/below/job  *held .*flock' "$dir/ls"
expect_equal "since when, by the clock of the claim's host" "host true" \
    "$(ctl show --json folder/job | jq -r '.locks[0].claims[0] | "\(.clock) \(.age >= 0 and .age < 600)"')"
expect_equal "locks of a folder" 2 "$(ctl ls --json 'folder' | jq '.locks | length')"
[[ $(find "$dir/B/.dlockfs/locks/folder" -type f -printf '%P\n' | sort | paste -sd' ') = "below/job job" ]]
expect_status 1 ctl wait -w 0.3 folder/job
start free "$dlockctl" --mount "$dir/B" wait folder/job
release shown
expect_status 0 finish free
release waits

# Steering.
start polite "$dlockctl" run "$dir/A/steered" bash -c 'trap "echo asked; exit 5" TERM; echo ready; while :; do sleep 0.1; done'
expect polite ready
ctl revoke steered >"$dir/revoke.out"
expect polite asked
expect_status 5 finish polite
comes_free "$dir/B/steered"
keep victim "$dir/A/steered" flock
wait_until "$deadline" granted victim
keep heir "$dir/B/steered" flock
wait_claims steered 2
start_terminal
type_line "cd ${dlockctl%/*}; M=$dir/B; clear; ./dlockctl --mount \$M top"
expect_screen '^steered +1  held +exclusive '
keys q
cut=$(lease now)
ctl break steered --yes | finds '^took the claim at position 1 away (held'
wait_until "$deadline" fenced victim
fenced_first "$cut" victim heir
release victim heir
ctl doctor >"$dir/doctor" || expect_equal status 1 $?
grep -q "^ok: store: etcd://$(etcd_address)/dlockfs connected to $(etcd_address)" "$dir/doctor" || fail "$(<"$dir/doctor")"
grep -q '^ok: session: connected' "$dir/doctor"
grep -q '^ok: abilities: .*queue,shared,ranges' "$dir/doctor" || fail "$(<"$dir/doctor")"

# Metrics.
metric() {
    sed -n "s/^$2 //p" "$dir/$1/.dlockfs/metrics"
}
expect_equal "connected" 1 "$(metric A dlockfs_session_connected)"
expect_equal "session timeout" 20.000 "$(metric A dlockfs_session_timeout_seconds)"
for operation in place withdraw list watch prove amend; do
    [ "$(metric A "dlockfs_store_operation_seconds_count{operation=\"$operation\"}")" -gt 0 ] || fail "no operation $operation"
done
expect_equal "handles fenced" 1 "$(metric A dlockfs_fenced_handles_total)"
stop_dlockfs A
stop_dlockfs B
expect_equal "what is left in etcd" /dlockfs/.dlockfs/settled "$(etcd get --prefix --keys-only / | grep .)"

# A prefix of its own in etcd, the rest in this process; and the other way round with ZooKeeper.
etcd_store=$store
start_zookeeper
printf '%s\n' '[mount]' 'directories = jobs' '[store]' "url = $store" '[store "jobs"]' "url = $etcd_store" >"$dir/two.ini"
printf '%s\n' '[mount]' 'directories = jobs' '[store]' "url = $etcd_store" '[store "jobs"]' 'url = local:' >"$dir/local.ini"
store=$etcd_store
for name in two local; do
    mkdir "$dir/$name-A" "$dir/$name-B"
    for host in "$name-A" "$name-B"; do
        "$dlockfs" --config "$dir/$name.ini" -o new_root "$dir/$host"
        process_record "$dir" "$host" "$(sed -n 's/^pid=//p;T;q' "$dir/$host/.dlockfs/status")"
    done
done
hold in-etcd "$dir/two-A/jobs/one"
expect in-etcd held
hold in-zookeeper "$dir/two-A/other"
expect in-zookeeper held
expect_equal "claims in etcd" 1 "$(etcd_claims jobs/one | wc -l)"
expect_equal "claims in ZooKeeper" "1 0" \
    "$(zookeeper claims /dlockfs/other | wc -l) $(zookeeper claims /dlockfs/jobs/one | grep -c . || true)"
expect_status 1 flock -n "$dir/two-B/jobs/one" true
expect_status 1 flock -n "$dir/two-B/other" true
expect_equal "locks of both" "jobs/one other" "$("$dlockctl" --mount "$dir/two-B" ls --json | jq -r '[.locks[].name] | sort | join(" ")')"
hold in-main "$dir/local-A/other2"
expect in-main held
hold in-local "$dir/local-A/jobs/one2"
expect in-local held
expect_status 1 flock -n "$dir/local-B/other2" true
flock -n "$dir/local-B/jobs/one2" true
expect_equal "claims in etcd" "1 0" "$(etcd_claims other2 | wc -l) $(etcd_claims jobs/one2 | wc -l)"
release in-etcd in-zookeeper in-main in-local
for host in {two,local}-{A,B}; do
    umount "$dir/$host"
    wait_until "$deadline" gone "$host"
done
