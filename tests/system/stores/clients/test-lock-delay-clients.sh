#!/bin/bash
# With lock_delay a marker stands beside the claim of who holds, and after a loss alone. To other clients it is in nobody's way: they
# wait for the claim, and have the lock when that is gone.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=other-clients.sh
. "$(dirname "$0")/other-clients.sh"

# shellcheck disable=SC2034 # for start_hosts
more_configuration=('[locks]' 'lock_delay = 1h')
start_hosts
used=(
    "curator-rw/a java write" "curator-rw/b java read" "curator-rw/c kazoo lock+__WRIT__+__READ__"
    "curator-mutex/a java mutex" "curator-mutex/b java recipe" "curator-mutex/c kazoo lock+lock-"
    "kazoo/a kazoo lock" "kazoo/b kazoo write" "kazoo/c kazoo read"
    "curator-any/a java mutex" "curator-any/b java write" "curator-any/c java recipe"
    "plain/a kazoo W" "plain/b kazoo R"
)

for use in "${used[@]}"; do
    read -r lock client kind <<<"$use"
    hold holder "$dir/A/$lock"
    expect holder held
    order "$client" take "$kind" "/dlockfs/$lock"
    taken=$last
    claims "$lock" $(($(claims_of "$lock" 1 1) + 1)) # and the marker
    if said "$client" "$taken held"; then
        violation "$use: two have it"
    fi
    release holder
    wait_until "$deadline" grep -q "^$taken " "$dir/$client.out"
    said "$client" "$taken held" || fail "$use: $(grep "^$taken " "$dir/$client.out")"
    order_again "$client" release "$taken"
    claims "$lock" 0
done

# Those who hold are lost.
holders=()
for use in "${used[@]}"; do
    read -r lock _ <<<"$use"
    holders+=("holder-${lock/\//-}")
    hold "${holders[-1]}" "$dir/A/$lock"
done
for holder in "${holders[@]}"; do
    expect "$holder" held
done
kill_dlockfs A
for use in "${used[@]}"; do
    read -r lock client kind <<<"$use"
    claims "$lock" 1 # the marker
    answers held "$client" take "$kind" "/dlockfs/$lock"
    order_again "$client" release "$last"
    expect_status 1 flock -n "$dir/B/$lock" true
done
release "${holders[@]}"
