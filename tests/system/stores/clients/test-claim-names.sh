#!/bin/bash
# What other clients see of the locks: claims named as Curator's, ephemeral, with short lines about the holder, under container
# znodes that go when idle.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

zookeeper_options=(-Dznode.container.checkIntervalMs=100)
start_zookeeper
start_dlockfs A
mkdir "$dir/A/nightly"

hold writer "$dir/A/nightly/job"
hold reader -s "$dir/A/shared"
call opened "$dir/A/with space%" excl hold
expect writer held
expect reader held
expect opened "excl ok"
hex='[0-9a-f]'
uuid="$hex{8}-$hex{4}-$hex{4}-$hex{4}-$hex{12}"
name=$(zookeeper claims /dlockfs/nightly/job)
grep -qxE "_c_$uuid-__WRIT__[0-9]{10}" <<<"$name" || fail "claim of a writer: $name"
grep -qxE "_c_$uuid-__READ__[0-9]{10}" <<<"$(zookeeper claims /dlockfs/shared)" || fail "claim of a reader"
grep -qxE "_c_$uuid-__WRIT__[0-9]{10}" <<<"$(zookeeper claims '/dlockfs/with space%25')" || fail "encoded name"
[ "$(zookeeper owner "/dlockfs/nightly/job/$name")" != 0 ] || fail "the claim is not ephemeral"
zookeeper data "/dlockfs/nightly/job/$name" >"$dir/data"
grep -q "^host=$(hostname)" "$dir/data" || fail "host: $(<"$dir/data")"
grep -q '^pid=[0-9]' "$dir/data" || fail "pid: $(<"$dir/data")"

release writer reader opened
containers_gone() {
    [ -z "$(zookeeper children /dlockfs/nightly)" ] && ! zookeeper children /dlockfs | finds 'shared\|space'
}
wait_until "$deadline" containers_gone
flock -n "$dir/A/nightly/job" true
