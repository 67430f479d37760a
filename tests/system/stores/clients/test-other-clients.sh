#!/bin/bash
# Locks of the mount and those of other clients on the same servers exclude each other, as recipe says: Curator's InterProcessMutex,
# InterProcessReadWriteLock and InterProcessSemaphoreMutex, ZooKeeper's own recipe, kazoo's Lock, WriteLock and ReadLock, the
# textbook's shared lock. Both ways round, shared and exclusive, contended, and when either side is killed. What does not exclude, and
# what others do wrong, is shown as well.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=other-clients.sh
. "$(dirname "$0")/other-clients.sh"

start_hosts

# Lock, client, and how it locks: exclusively; shared. "-": it has none. "blind": it does not look at shared locks.
rows=(
    "curator-rw/curator java write read"
    "curator-rw/kazoo kazoo write+__WRIT__+__READ__ read+__WRIT__"
    "curator-rw/kazoo-lock kazoo lock+__WRIT__+__READ__ -"
    "curator-mutex/curator java mutex -"
    "curator-mutex/zookeeper java recipe -"
    "curator-mutex/kazoo kazoo lock+lock- -"
    "kazoo/rw kazoo write read"
    "kazoo/lock kazoo lock blind"
    "curator-any/mutex java mutex -"
    "curator-any/rw java write read"
    "plain/textbook kazoo W R"
)

# One after the other: the mount, the client, the other mount.
excludes() { # LOCK CLIENT EXCLUSIVE
    local id
    hold first "$dir/A/$1"
    expect first held
    answers refused "$2" try "$3" "/dlockfs/$1"
    order "$2" take "$3" "/dlockfs/$1"
    id=$last
    claims "$1" "$(claims_of "$1" 1 1)"
    hold third "$dir/B/$1"
    claims "$1" "$(claims_of "$1" 2 1)"
    expect_status 1 flock -n "$dir/A/$1" true
    release first
    expect "$2" "$id held"
    expect_status 1 flock -n "$dir/A/$1" true
    expect_status 1 flock -n -s "$dir/A/$1" true
    if said third held; then
        violation "$1: held beside $3 of $2"
    fi
    order_again "$2" release "$id"
    expect third held
    release third
}

shares() { # LOCK CLIENT EXCLUSIVE SHARED
    local id
    hold reader -s "$dir/A/$1"
    expect reader held
    if [ "$4" = blind ]; then
        answers held "$2" try "$3" "/dlockfs/$1"
        order_again "$2" release "$last"
        release reader
        return
    fi
    answers refused "$2" try "$3" "/dlockfs/$1"
    if [ "$4" = - ]; then
        release reader
        return
    fi
    answers held "$2" try "$4" "/dlockfs/$1"
    id=$last
    release reader
    comes_free_shared "$dir/B/$1"
    expect_status 1 flock -n "$dir/A/$1" true
    order_again "$2" release "$id"
    comes_free "$dir/A/$1"
}

for row in "${rows[@]}"; do
    read -r lock client exclusive shared <<<"$row"
    excludes "$lock" "$client" "$exclusive"
    shares "$lock" "$client" "$exclusive" "$shared"
done

# Shared locks are taken exclusively where there are none.
hold reader -s "$dir/A/curator-mutex/curator"
expect reader held
expect_status 1 flock -n -s "$dir/A/curator-mutex/curator" true
expect_status 1 flock -n -s "$dir/B/curator-mutex/curator" true
call range "$dir/A/curator-mutex/range" open r-nb:0-9 hold
expect range "r-nb:0-9 ok"
call get "$dir/A/curator-mutex/range" open r-nb:5-5 get-r:0-9
finish get
expect get "r-nb:5-5 EAGAIN"
grep -q '^get-r:0-9 w 0-9 ' "$dir/get.out" || fail "not exclusive: $(<"$dir/get.out")"
release reader range

# Byte ranges: those of the mount share the file, to others it is locked as a whole.
for row in "${rows[@]}"; do
    read -r lock client exclusive shared <<<"$row"
    call ranges "$dir/A/$lock" open w-nb:0-9 hold
    expect ranges "w-nb:0-9 ok"
    call other "$dir/B/$lock" open w-nb:20-29 w-nb:9-20
    finish other
    expect other "w-nb:20-29 ok"
    expect other "w-nb:9-20 EAGAIN"
    answers refused "$client" try "$exclusive" "/dlockfs/$lock"
    release ranges
    comes_free "$dir/B/$lock"
done

# Contended: each client and two mounts increment one number. Others look at it under shared locks, and may not see it change.
for row in "${rows[@]}"; do
    read -r lock client exclusive shared <<<"$row"
    file=$dir/number-${lock//\//-}
    echo 0 >"$file"
    start "count-${lock//\//-}" "$python" "$tests/lib/counter.py" flock "$file" 2 30 "$dir/A/$lock" "$dir/B/$lock"
    order "$client" count "$exclusive" "/dlockfs/$lock" "$file" 20
    counting+=("$client $last counted")
    [ "$shared" != blind ] || continue
    start "look-${lock//\//-}" "$python" "$tests/lib/counter.py" look "$file" 2 20 "$dir/A/$lock" "$dir/B/$lock"
    looking+=("look-${lock//\//-}")
    if [ "$shared" != - ]; then
        order "$client" look "$shared" "/dlockfs/$lock" "$file" 10
        counting+=("$client $last looked")
    fi
done
for row in "${rows[@]}"; do
    read -r lock _ <<<"$row"
    finish "count-${lock//\//-}"
done
for name in "${looking[@]}"; do
    finish "$name"
done
for text in "${counting[@]}"; do
    expect "${text%% *}" "${text#* }"
done
for row in "${rows[@]}"; do
    read -r lock _ <<<"$row"
    expect_equal "increments under $lock" 50 "$(<"$dir/number-${lock//\//-}")"
done

# The clients are killed while they hold: the mounts get the locks when their sessions are over. While they wait: who stands behind
# them gets the lock after who stands in front of them.
for row in "${rows[@]}"; do
    read -r lock client exclusive _ <<<"$row"
    answers held "$client" try "$exclusive" "/dlockfs/$lock"
    hold "after-${lock//\//-}" "$dir/A/$lock"
    claims "$lock" "$(claims_of "$lock" 1 1)"
    hold "front-${lock//\//-}" "$dir/A/$lock-queue"
    expect "front-${lock//\//-}" held
    order "$client" take "$exclusive" "/dlockfs/$lock-queue"
    claims "$lock-queue" "$(claims_of "$lock" 1 1)"
    hold "behind-${lock//\//-}" "$dir/B/$lock-queue"
    claims "$lock-queue" "$(claims_of "$lock" 2 1)"
done
kill_clients
for row in "${rows[@]}"; do
    read -r lock _ <<<"$row"
    expect "after-${lock//\//-}" held
    wait_claims "$lock-queue" "$(claims_of "$lock" 2 0)"
    if said "behind-${lock//\//-}" held; then
        violation "$lock-queue: held beside its holder"
    fi
    release "front-${lock//\//-}"
    expect "behind-${lock//\//-}" held
    release "behind-${lock//\//-}"
done

# And the other way round.
start_clients
for row in "${rows[@]}"; do
    read -r lock client exclusive _ <<<"$row"
    order "$client" take "$exclusive" "/dlockfs/$lock"
    taking+=("$client $last held")
    claims "$lock" "$(claims_of "$lock" 1 1)"
    hold "front-${lock//\//-}" "$dir/B/$lock-queue"
    expect "front-${lock//\//-}" held
    hold "killed-${lock//\//-}" "$dir/A/$lock-queue"
    claims "$lock-queue" "$(claims_of "$lock" 2 0)"
    order "$client" take "$exclusive" "/dlockfs/$lock-queue"
    behind+=("$client $last held")
    claims "$lock-queue" "$(claims_of "$lock" 2 1)"
done
for text in "${taking[@]}"; do
    if said "${text%% *}" "${text#* }"; then
        violation "${text#* } beside the mount"
    fi
done
kill_dlockfs A
for text in "${taking[@]}"; do
    expect "${text%% *}" "${text#* }"
done
for row in "${rows[@]}"; do
    read -r lock _ <<<"$row"
    claims "$lock-queue" "$(claims_of "$lock" 1 1)"
done
for text in "${behind[@]}"; do
    if said "${text%% *}" "${text#* }"; then
        violation "${text#* } beside the mount"
    fi
done
for row in "${rows[@]}"; do
    read -r lock _ <<<"$row"
    release "front-${lock//\//-}"
done
for text in "${behind[@]}"; do
    expect "${text%% *}" "${text#* }"
done
