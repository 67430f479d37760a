#!/bin/bash
# dlockctl --store URL looks at the locks of a store without a mount: puts nothing there, and leaves no mount, process or file, however it ends.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# The daemon that dlockctl starts is found in PATH.
export PATH=$build:$PATH TMPDIR=$dir/private
mkdir "$TMPDIR"

# nothing_left: no folder, and so no mount, of dlockctl; and no process that was started there.
nothing_left() {
    [ -z "$(ls "$TMPDIR")" ] && ! grep -q " $TMPDIR/" /proc/self/mountinfo && ! pgrep -f -- "$TMPDIR/" >"$dir/left"
}

# told ARGUMENT...: what a command tells, but for what depends on the moment, and on the mount.
told() {
    "$dlockctl" --json "$@" | jq -c 'del(.mount) | del(.. | .age?)'
}

# looks MOUNT STORE: what all commands tell is what they tell at a mount.
looks() {
    local command
    for command in ls "show job" graph; do
        # shellcheck disable=SC2086
        expect_equal "$command" "$(told --mount "$1" $command)" "$(told --store "$2" $command)"
    done
    expect_equal hosts "$(hostname) 1 1 false false" \
        "$("$dlockctl" hosts --json --store "$2" | jq -r '.stores[0].hosts[] | [.host, .locks, .waiters, .self, .differs] | join(" ")')"
    nothing_left || fail "left: $(ls "$TMPDIR") $(<"$dir/left")"
}

start_zookeeper
start_dlockfs A
hold holder "$dir/A/job"
expect holder held
call waiter "$dir/A/job" open ex
wait_until "$deadline" grep -q waiting "$dir/A/.dlockfs/locks/job"
before=$(zookeeper below /)
looks "$dir/A" "$store"
expect_equal "what is on ZooKeeper" "$before" "$(zookeeper below /)"
expect_equal "mount in JSON" "$store" "$("$dlockctl" --json --store "$store" ls | jq -r .mount)"

# A path that is not there stays so.
expect_status 66 "$dlockctl" --store "${store%/*}/typo" ls 2>"$dir/err"
grep -q 'typo: there is no such path, or it cannot be read; expected the URL as the hosts have it$' "$dir/err"
expect_equal "what is on ZooKeeper" "$before" "$(zookeeper below /)"
nothing_left || fail "left: $(ls "$TMPDIR") $(<"$dir/left")"

# Ended in whatever way while it waits for a server that does not answer.
for signal in INT TERM KILL; do
    "$dlockctl" --store zookeeper://127.0.0.1:1/dlockfs ls 2>/dev/null &
    pid=$!
    wait_until "$deadline" grep -q " $TMPDIR/" /proc/self/mountinfo
    kill -s "$signal" "$pid"
    wait "$pid" || true
    wait_until "$deadline" nothing_left
done

# Mistakes get one line each.
expect_status 64 "$dlockctl" --store "$store" doctor 2>"$dir/err"
grep -q '^dlockctl: doctor: needs a mount; expected --store' "$dir/err"
expect_status 64 "$dlockctl" --store local: ls 2>"$dir/err"
grep -q '^dlockctl: --store local: its locks are of this host' "$dir/err"
expect_status 69 "$dlockctl" --store zoo://x/y ls 2>"$dir/err"
grep -q '^dlockctl: zoo://x/y: --store: bad store' "$dir/err"
expect_status 69 "$dlockctl" --config "$dir/nowhere" ls 2>"$dir/err"
grep -q "^dlockctl: $dir/nowhere: " "$dir/err"
expect_equal "lines of mistakes" 1 "$(wc -l <"$dir/err")"
nothing_left || fail "left: $(ls "$TMPDIR") $(<"$dir/left")"

# The same on etcd, where it has a lease, and no key.
start_etcd
start_dlockfs B
release holder
finish waiter
hold holder "$dir/B/job"
expect holder held
call waiter "$dir/B/job" open ex
wait_until "$deadline" grep -q waiting "$dir/B/.dlockfs/locks/job"
etcd get "" --prefix --write-out=fields | grep -v '"Revision"\|RaftTerm\|MemberID' >"$dir/before"
looks "$dir/B" "$store"
diff "$dir/before" <(etcd get "" --prefix --write-out=fields | grep -v '"Revision"\|RaftTerm\|MemberID')
expect_equal "leases on etcd" 1 "$(etcd lease list | grep -c '^[0-9a-f]*$')"
release holder
finish waiter
