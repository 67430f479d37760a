#!/bin/bash
# What etc/doc/containers.md says: a daemon in a container, whose users are in others. The mount reaches them by propagation; the
# daemon does not see their processes, and all calls work, exclusive open, too; users are those of the host; what a restart of the
# daemon does to the mount in a container.

# Mounts are shared in here, and end with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount --propagation private -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

share=$dir/share # the volume: what is mounted in it reaches all containers that have it
mkdir "$share" "$share/A" "$dir/fixed"
mount --bind "$share" "$share"
mount --make-shared "$share"
container=(unshare --mount --pid --fork --kill-child --mount-proc)
pod=("${container[@]}" --propagation slave --)

# The daemon, in a container whose mounts reach the host.
start_contained() {
    start A "${container[@]}" --propagation unchanged -- "$dlockfs" --foreground --store "$store" -o new_root "$share/A"
    wait_until "$deadline" is_mounted "$share/A"
}

# end_contained: as a container's end begins. (To unmount is not enough: other containers have the mount, too.)
end_contained() {
    kill -TERM "$(daemon)"
    finish A
    not_mounted "$share/A"
}

daemon() {
    pgrep -P "$(pid A)"
}

# pod_call NAME FILE STEP...: as call, in a container of its own.
pod_call() {
    local name=$1
    shift
    start "$name" "${pod[@]}" "$python" -u "$tests/lib/calls.py" "$@"
}

# The daemon goes on as another program. In its own pid namespace it is process 1.
take_over() {
    local before
    before=$(grep -c ' goes on with version ' "$dir/A.out" || true)
    kill -USR2 "$(daemon)"
    wait_until "$deadline" later_than "$before"
}

later_than() {
    [ "$(grep -c ' goes on with version ' "$dir/A.out")" -gt "$1" ]
}

queue_has() {
    grep -q "$1" "$share/A/.dlockfs/locks/job"
}

start_zookeeper
start_dlockfs B

# A container that is there before the mount sees it; one whose volume is the mount point itself has to begin later.
start early "${pod[@]}" sh -c 'echo ready; until test -e "$1"; do sleep 0.05; done; echo seen; exec sleep infinity' - \
    "$share/A/.dlockfs/status"
expect early ready
start_contained
expect early seen
start fixed "${pod[@]}" sh -c 'mount --bind "$1" "$2" && echo bound; exec sleep infinity' - "$share/A" "$dir/fixed"
expect fixed bound
fixed_sees() {
    nsenter --mount --target "$(pgrep -P "$(pid fixed)")" -- "$@"
}
fixed_sees test -e "$dir/fixed/.dlockfs/status"

# Exclusive open waits, in the order of the calls, and excludes all other calls, on all hosts.
pod_call first "$share/A/job" excl write=4711 await="$dir/close" close hold
expect first "write 4"
grep -q 'pid=0 uid=0 since=' "$share/A/.dlockfs/locks/job" || fail "the daemon sees who calls"
pod_call try "$share/A/job" excl-nb open ex-nb sh-nb
finish try
expect_equal "while it is held" "excl-nb EEXIST,open ok,ex-nb EAGAIN,sh-nb EAGAIN" "$(paste -sd, "$dir/try.out")"
expect_status 1 flock -n "$dir/B/job" true
expect_equal "the file" 4711 "$(cat "$share/A/job")"
pod_call second "$share/A/job" excl hold
wait_claims job 2
pod_call third "$share/A/job" excl await="$dir/third" close hold
wait_claims job 3
call on-b "$dir/B/job" excl hold
wait_claims job 4
# Who waits there hides the name from nobody for good, and keeps nobody waiting who asks for it.
expect_equal "names" job "$(ls "$share/A")"
soon cat "$share/A/job" >"$dir/text"
expect_equal "the file, while others wait" 4711 "$(<"$dir/text")"
release second # leaves the queue
wait_claims job 3
take_over
if said third "excl ok" || said on-b "excl ok"; then
    fail "a waiter got what is held"
fi
go close
expect third "excl ok"
expect_equal "the file, made anew" "" "$(ls "$share/A" >"$dir/names" && cat "$share/A/job")"
if said on-b "excl ok"; then
    violation "two hold, or the order is another one"
fi
go third
expect on-b "excl ok"
release first third on-b
wait_claims job 0

# A signal ends the wait; flock on another host is waited for, and its holder's death is seen.
hold flock "$dir/B/job"
expect flock held
pod_call alarmed "$share/A/job" alarm=1 excl quiet excl hold
expect alarmed "excl EINTR"
wait_claims job 2
release flock
expect alarmed "excl ok"
release alarmed
comes_free "$dir/B/job"

# A name that an open of another kind uses meanwhile stays, with its text, when the exclusive open fails.
hold flock "$share/A/job"
expect flock held
start writer bash -c 'exec 9>>"$1"; echo text >&9; echo written; exec sleep infinity' - "$share/A/job"
expect writer written
pod_call refused "$share/A/job" alarm=1 excl
pod_call refused-nb "$share/A/job" excl-nb
finish refused
finish refused-nb
said refused "excl EINTR"
said refused-nb "excl-nb EEXIST"
ls "$share/A" >"$dir/names"
expect_equal "the text" text "$(cat "$share/A/job")"
release flock writer

# Whoever gets at the file of an open that waits, by its number, learns what becomes of the open, and does not let it in.
end_contained
start_contained
hold flock "$share/A/job" # node 2
expect flock held
pod_call waiter "$share/A/job" excl hold # node 3
wait_claims job 2
wait_until "$deadline" queue_has position=2
start beside "$python" "$tests/system/mount/stat_node.py" "$share/A" 3
expect beside asks
wait_until "$deadline" asleep beside
start beside-killed "$python" "$tests/system/mount/stat_node.py" "$share/A" 3
expect beside-killed asks
wait_until "$deadline" asleep beside-killed
release beside-killed
take_over
if said waiter "excl ok" || said beside ok; then
    violation "two hold"
fi
release flock
expect waiter "excl ok"
expect beside ok
finish beside
release waiter
wait_claims job 0
hold flock "$share/A/job"
expect flock held
pod_call waiter "$share/A/job" alarm=5 excl # node 4: flock has opened node 3, which has the name
wait_claims job 2
start beside "$python" "$tests/system/mount/stat_node.py" "$share/A" 4
expect beside ESTALE
finish beside
finish waiter
expect waiter "excl EINTR"
release flock

# Users are those of the host, whatever a user namespace calls them.
chmod 711 "$dir"
as_root_of_their_own=(setpriv --reuid=12345 --regid=12345 --clear-groups unshare --user --map-root-user)
start mapped "${as_root_of_their_own[@]}" flock "$share/A/job" sh -c 'id -u; echo held; exec sleep infinity'
expect mapped held
said mapped 0
queue_has uid=12345
release mapped
(umask 077 && : >"$share/A/ours")
expect_status 66 "${as_root_of_their_own[@]}" flock -n "$share/A/ours" true 2>"$dir/err"
grep -q 'Permission denied' "$dir/err"

# A container may have one directory alone. dlockctl works in any that has the mount.
mkdir "$share/A/team" "$dir/team"
start team "${pod[@]}" sh -c 'mount --bind "$1" "$2" && exec flock "$2/job" sh -c "echo held; exec sleep infinity"' - \
    "$share/A/team" "$dir/team"
expect team held
mkdir "$dir/B/team"
expect_status 1 flock -n "$dir/B/team/job" true
release team
start run "${pod[@]}" "$dlockctl" --mount "$share/A" run -n job sh -c 'echo "$DLOCK_NAME"; exec sleep infinity'
expect run job
"$dlockctl" --mount "$dir/B" break job --yes >"$dir/break"
expect_status 75 finish run

# The daemon ends, and another one mounts: that reaches the volume; a bind mount of the mount point stays dead.
pod_call holder "$share/A/job" excl hold
expect holder "excl ok"
end_contained
flock -n "$dir/B/job" true
start_contained
start late "${pod[@]}" flock -n "$share/A/job" true
finish late
nsenter --mount --target "$(pgrep -P "$(pid early)")" -- flock -n "$share/A/job" true
refused fixed_sees test -e "$dir/fixed/.dlockfs/status"
release holder

# The death of its process 1 takes all of a container with it, the guard too. What the host has in place of the mount is dead; the
# next daemon replaces it.
kill -KILL "$(daemon)"
finish A 2>/dev/null || true
refused test -e "$share/A/.dlockfs/status"
start_contained
wait_until "$deadline" test -e "$share/A/.dlockfs/status"
nsenter --mount --target "$(pgrep -P "$(pid early)")" -- flock -n "$share/A/job" true
release early fixed
end_contained
