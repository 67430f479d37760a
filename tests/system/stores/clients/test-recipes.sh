#!/bin/bash
# What a recipe cannot do, what other clients do wrong, and what is peculiar to claims of two znodes: see etc/doc/other-clients.md.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=other-clients.sh
. "$(dirname "$0")/other-clients.sh"

start_hosts

# does_not_see LOCK CLIENT KIND: the client gets the lock though the mount has it. The other way round it is waited for.
does_not_see() {
    hold holder "$dir/A/$1"
    expect holder held
    answers held "$2" try "$3" "/dlockfs/$1"
    release holder
    expect_status 1 flock -n "$dir/A/$1" true
    order_again "$2" release "$last"
    comes_free "$dir/A/$1"
}
does_not_see curator-rw/others kazoo lock
does_not_see curator-rw/others kazoo write
does_not_see curator-rw/others java mutex
does_not_see curator-mutex/others java write
does_not_see kazoo/others java mutex
does_not_see kazoo/others java write
does_not_see plain/others java mutex
does_not_see plain/others java write
does_not_see plain/others kazoo write

# A client by the textbook may split a name at its dashes, into three parts. It is waited for with every recipe, and R is shared.
hold holder "$dir/A/plain/name"
expect holder held
grep -qxE '_c_[0-9a-f.]{36}-W-[0-9]{10}' <<<"$(zookeeper claims /dlockfs/plain/name)" || fail "not by the textbook"
release holder
call holder "$dir/A/plain/name" open r-nb:5-9 hold
expect holder "r-nb:5-9 ok"
grep -qxE '_c_[0-9a-f.]{36}\.r5\.9-R-[0-9]{10}' <<<"$(zookeeper claims /dlockfs/plain/name)" || fail "not by the textbook"
answers held kazoo try R /dlockfs/plain/name
order_again kazoo release "$last"
answers refused kazoo try W /dlockfs/plain/name
release holder
comes_free "$dir/B/plain/name"
for lock in curator-rw/textbook kazoo/textbook curator-any/textbook; do
    answers held kazoo try R "/dlockfs/$lock"
    expect_status 1 flock -n "$dir/A/$lock" true
    flock -n -s "$dir/A/$lock" true
    order_again kazoo release "$last"
    comes_free "$dir/A/$lock"
done
for lock in curator-rw/textbook curator-mutex/textbook kazoo/textbook curator-any/textbook; do
    answers held kazoo try W "/dlockfs/$lock"
    expect_status 1 flock -n "$dir/A/$lock" true
    expect_status 1 flock -n -s "$dir/A/$lock" true
    order_again kazoo release "$last"
    comes_free "$dir/A/$lock"
done

# The client of an old version shows its fault, that of a new one does not.
older() { # VERSION THAN
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" != "$2" ]
}

# Before 2.9 kazoo's read lock waits for writers that came later, which wait for it.
hold first "$dir/A/kazoo/late"
expect first held
order kazoo take read /dlockfs/kazoo/late
reader=$last
claims kazoo/late 2
hold later "$dir/B/kazoo/late"
claims kazoo/late 3
later=$(zookeeper claims /dlockfs/kazoo/late | tail -n 1)
release first
if older "$("$python" -c 'import kazoo.version; print(kazoo.version.__version__)')" 2.9; then
    answers watched kazoo watched "/dlockfs/kazoo/late/$later"
    claims kazoo/late 2
    if said kazoo "$reader held" || said later held; then
        fail "one of two holds that wait for each other"
    fi
    release later
    expect kazoo "$reader held"
else
    expect kazoo "$reader held"
    if said later held; then
        violation "held beside a reader"
    fi
    release later
fi
order_again kazoo release "$reader"

# Before 5.5 Curator's read lock stands behind those who waited for the write lock that it is to replace.
order java take write /dlockfs/curator-rw/downgrade
writer=$last
expect java "$writer held"
hold waiter "$dir/A/curator-rw/downgrade"
claims curator-rw/downgrade 2
order_again java read "$writer"
expect java "$writer reads"
order_again java release "$writer"
# shellcheck disable=SC2016 # for dpkg-query
if older "$(dpkg-query -Wf '${Version}' libcurator-recipes-java)" 5.5; then
    expect waiter held
else
    expect java "$writer released"
    claims curator-rw/downgrade 2
    if said waiter held; then
        violation "held beside a reader"
    fi
fi
release waiter

# From 5.5 on it has the number of the write lock, so that it comes in front of them.
curator=/dlockfs/curator-rw/number/_c_00000000-1111-4222-8333-444444444444
zookeeper make /dlockfs/curator-rw/number
answers made kazoo make "${curator}-__WRIT__0000000000"
writer=$last
hold waiter "$dir/A/curator-rw/number"
claims curator-rw/number 2
answers made kazoo make "${curator%4}5-__READ__0000000000"
answers deleted kazoo delete "${curator}-__WRIT__0000000000"
answers watched kazoo watched "${curator%4}5-__READ__0000000000"
if said waiter held; then
    violation "held beside a reader that has the number of a writer"
fi
hold reader -s "$dir/B/curator-rw/number"
claims curator-rw/number 3
answers deleted kazoo delete "${curator%4}5-__READ__0000000000"
expect waiter held
release waiter
expect reader held
release reader

# Curator's InterProcessSemaphoreMutex is two locks: in "leases" stands who has it, in "locks" who asks. Who has "locks" alone
# excludes nobody. Who takes both, in this order, does.
both() { # NAME HOST COMMAND...
    local name=$1 host=$2
    shift 2
    start "$name" flock "$dir/$host/jobs/locks" flock "$dir/$host/jobs/leases" "$@"
}
holding=(sh -c 'echo held; exec sleep infinity')
answers held java try semaphore /dlockfs/jobs
semaphore=$last
flock -n "$dir/A/jobs/locks" true
expect_status 1 flock -n "$dir/A/jobs/leases" true
both first A "${holding[@]}"
claims jobs/leases 2
if said first held; then
    violation "held beside a semaphore"
fi
order_again java release "$semaphore"
expect first held
answers refused java try semaphore /dlockfs/jobs
order java take semaphore /dlockfs/jobs
semaphore=$last
claims jobs/locks 2
both third B "${holding[@]}"
claims jobs/locks 3
release first
expect java "$semaphore held"
if said third held; then
    violation "held beside a semaphore"
fi
order_again java release "$semaphore"
expect third held
release third
echo 0 >"$dir/number"
order java count semaphore /dlockfs/jobs "$dir/number" 10
# shellcheck disable=SC2016 # for the shell that is started
increment=(sh -c 'number=$(cat "$1"); echo $((number + 1)) >"$1"' - "$dir/number")
for ((i = 0; i < 10; i++)); do
    both "countA" A "${increment[@]}"
    both "countB" B "${increment[@]}"
    finish countA
    finish countB
done
expect java "$last counted"
expect_equal "increments under a semaphore" 30 "$(<"$dir/number")"

# Curator's InterProcessSemaphoreV2 is two locks as well, but who has a lease gives "locks" back. Who does the same is one of its
# holders: as many get in as leases there are, in the order of "locks".
leased() { # NAME HOST COMMAND...
    local name=$1 host=$2
    shift 2
    # shellcheck disable=SC2016 # for the shell that is started
    start "$name" sh -c 'exec 8>>"$1/locks" 9>>"$1/leases"; shift; flock 8; flock 9; flock -u 8; "$@"' - "$dir/$host/pool" "$@"
}
order java take lease /dlockfs/pool
java_first=$last
expect java "$java_first held"
leased first A "${holding[@]}"
expect first held
answers refused java try lease /dlockfs/pool
flock "$dir/B/pool/locks" true # nobody is on the way
expect_status 1 flock -n "$dir/B/pool/leases" true
order java take lease /dlockfs/pool
java_second=$last
claims pool/leases 3
leased second B "${holding[@]}"
claims pool/locks 2
release first
expect java "$java_second held"
claims pool/leases 3
if said second held; then
    violation "three hold two leases"
fi
order_again java release "$java_first"
expect second held
order_again java release "$java_second"
release second
mkdir "$dir/crowd"
order java crowd lease /dlockfs/pool "$dir/crowd" 20
java_first=$last
order java crowd lease /dlockfs/pool "$dir/crowd" 20
java_second=$last
# shellcheck disable=SC2016 # for the shell that is started
be_one=(sh -c 'touch "$1/$$"; ls "$1" | wc -l >>"$2"; rm "$1/$$"' - "$dir/crowd" "$dir/crowded")
for ((i = 0; i < 10; i++)); do
    leased "leasedA" A "${be_one[@]}"
    leased "leasedB" B "${be_one[@]}"
    finish leasedA
    finish leasedB
done
expect java "$java_first crowded"
expect java "$java_second crowded"
expect_equal "how many held" 20 "$(grep -cx '[12]' "$dir/crowded")"
claims pool/leases 0

# Hosts that are not configured alike exclude each other, and one of them says so, once.
start_dlockfs C --session-timeout 10s -o recipe=kazoo
mkdir "$dir/C/curator-any"
hold holder "$dir/A/curator-any/mixed"
expect holder held
expect_status 1 flock -n "$dir/C/curator-any/mixed" true
expect_status 1 flock -n -s "$dir/C/curator-any/mixed" true
hold waiter "$dir/C/curator-any/mixed"
wait_until "$deadline" grep -qx 'differs=curator-any/mixed' "$dir/C/.dlockfs/status"
"$dlockctl" --mount "$dir/C" doctor >"$dir/doctor" || true
grep -q '^warning: hosts: curator-any/mixed: another host has another recipe' "$dir/doctor" || fail "$(<"$dir/doctor")"
release holder
expect waiter held
release waiter
comes_free "$dir/C/curator-any/mixed"
expect_equal "messages about another recipe" 1 "$(grep -c "^dlockfs: warning: curator-any/mixed: claim .* of another host is of recipe \
curator-any, here it is kazoo" "$dir/C.log")"
stop_dlockfs C

# A claim of two znodes is one: whichever of them somebody deletes, its holder has lost the lock, the other one goes, and the next in
# the queue gets the lock; a waiter queues again.
for half in 1 2; do
    call holder "$dir/A/curator-any/half$half" open ex watch hold
    expect holder "ex ok"
    hold next "$dir/B/curator-any/half$half"
    claims "curator-any/half$half" 4
    zookeeper delete "/dlockfs/curator-any/half$half/$(zookeeper claims "/dlockfs/curator-any/half$half" | sed -n ${half}p)"
    wait_until "$deadline" grep -q '^watch .*ERR' "$dir/holder.out"
    expect next held
    claims "curator-any/half$half" 2
    release holder
    call waiter "$dir/A/curator-any/half$half" open ex hold
    claims "curator-any/half$half" 4
    zookeeper delete "/dlockfs/curator-any/half$half/$(zookeeper claims "/dlockfs/curator-any/half$half" | sed -n $((half + 2))p)"
    wait_until "$deadline" grep -q "while it waited" "$dir/A.log"
    claims "curator-any/half$half" 4
    release next
    expect waiter "ex ok"
    release waiter
    claims "curator-any/half$half" 0
    : >"$dir/A.log"
done

# It is shown as one, and taken away as one.
hold holder "$dir/A/curator-any/shown"
expect holder held
expect_equal "claims in the queue" "lock=curator-any/shown claims=1 holders=1" "$(head -n 1 "$dir/B/.dlockfs/locks/curator-any/shown")"
expect_equal "names below the lock" "" "$(ls -A "$dir/B/.dlockfs/locks/curator-any/shown/" 2>"$dir/ls.err")"
"$dlockctl" --mount "$dir/B" break curator-any/shown --yes >"$dir/break"
flock -w "$deadline" "$dir/B/curator-any/shown" true
claims curator-any/shown 0
release holder

# A kept claim goes when another client queues.
flock "$dir/A/curator-any/kept" true
claims curator-any/kept 2
order java take mutex /dlockfs/curator-any/kept
expect java "$last held"
order_again java release "$last"
flock "$dir/A/curator-any/kept" true
order java take write /dlockfs/curator-any/kept
expect java "$last held"

# Whoever has both locks of a semaphore, or a lease, is killed: the other side gets them when the session is over.
leased lease A "${holding[@]}"
expect lease held
order java take lease /dlockfs/pool
expect java "$last held"
order java take lease /dlockfs/pool
lease=$last
claims pool/leases 3
both last A "${holding[@]}"
expect last held
order java take semaphore /dlockfs/jobs
semaphore=$last
claims jobs/locks 2
kill_dlockfs A
expect java "$semaphore held"
expect java "$lease held"
leased leased-after B "${holding[@]}"
claims pool/leases 3
both after B "${holding[@]}"
claims jobs/leases 2
if said after held; then
    violation "held beside a semaphore"
fi
if said leased-after held; then
    violation "three hold two leases"
fi
kill_clients
expect after held
expect leased-after held
