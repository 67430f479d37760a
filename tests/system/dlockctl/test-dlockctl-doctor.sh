#!/bin/bash
# dlockctl doctor: what it says of a good mount, of one that is dead or hangs, and of locks on directories; and how dlockctl finds
# the mount.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/static_mount.sh
. "$tests/lib/static_mount.sh"
requires command -v jq

# On a device of its own: no lock of another program is on it.
mkdir "$dir/static"
mount -t tmpfs none "$dir/static"
make_static_mount
static=$dir/static/.dlockfs

# examine STATUS TEXT...: of the static mount; each text is a line, or its beginning.
examine() {
    local status=$1 text
    shift
    expect_status "$status" "$dlockctl" --mount "$dir/static" doctor >"$dir/doctor.out"
    if grep -vE '^(ok|warning|error): [a-z]+: ' "$dir/doctor.out"; then
        fail "not of that form"
    fi
    for text; do
        grep -qF -- "$text" "$dir/doctor.out" || fail "not said: $text: $(<"$dir/doctor.out")"
    done
}

examine 0 "ok: mount: $dir/static answers" "ok: session: connected, the lease lasts 8400 ms" \
    "ok: store: zookeeper://127.0.0.1:2181/dlockfs" "ok: abilities: the store has queue,shared,ranges,stamps,clients" "ok: directories: none is locked" ": clock: " \
    "ok: rights: dlockfs runs as user $(id -un 1) (1), with a filter of system calls" "ok: guard: watches,realtime,spared,locked"
sed -i 's/^session=.*/session=suspended/' "$static/status"
examine 1 "error: session: suspended: nothing is granted; see whether the servers can be reached: zookeeper://127.0.0.1:2181/dlockfs"
refused grep "ok: store" "$dir/doctor.out"
sed -i 's|^session=.*|session=connected|; s|^store=.*|& connected to 127.0.0.1:2181, session 0x1, timeout 15000 ms|' "$static/status"
sed -i 's/^store=.*/&\nstore_warning=one server forgets: see to it\nstore_warning=another one does/' "$static/status"
examine 0 "ok: store: " "warning: store: one server forgets: see to it" "warning: store: another one does"
sed -i '/^store_warning=/d' "$static/status"
examine 0 "ok: store: "
refused grep "warning: store" "$dir/doctor.out"
sed -i 's/^store=.*/&: no locks can be created there\nstore_error=no locks can be created there/' "$static/status"
examine 1 "error: store: zookeeper://127.0.0.1:2181/dlockfs connected to " ": no locks can be created there; see the log"
sed -i 's/^session=.*/session=connected/; s/^store=.*/store=local: this host only/; /^store_error=/d; s/^fenced=.*/fenced=2\nfiles=3/
    s/^exclusive_open_waits=.*/exclusive_open_waits=no/; s/^guard=.*/guard=watches,locked/' "$static/status"
examine 0 "warning: store: the locks are of this host only; to share them, set url = zookeeper://... or etcd://... in [store] of the configuration, or mount with --store and that" \
    "warning: fenced: 2 open files" \
    "ok: files: this host has made 3 lock files" \
    "warning: kernel: exclusive open does not wait" \
    "warning: guard: not realtime: others that want the processor may run before it" \
    "warning: guard: not spared: the kernel may end it when memory is short"
expect_equal JSON "local: this host only" \
    "$("$dlockctl" --mount "$dir/static" --json doctor | jq -r .status.store)"
expect_equal "JSON, result" warning "$("$dlockctl" --mount "$dir/static" --json doctor | jq -r .result)"
expect_equal "JSON, warnings" true \
    "$("$dlockctl" --mount "$dir/static" --json doctor | jq '[.checks[] | select(.result == "warning")] | length >= 3')"
expect_equal "JSON, stores" 0 "$("$dlockctl" --mount "$dir/static" --json doctor | jq '.stores | length')"

printf '%s\n' peers=10.0.0.1:7263 peers_answer=2 >>"$static/status"
examine 0 "ok: peers: listens at 10.0.0.1:7263; hosts that have answered: 2"
refused grep "warning: peers" "$dir/doctor.out"
printf '%s\n' 'peer_silent=10.0.0.8:7263 for_s=90' 'peer_silent=[2001:db8::9]:7263 for_s=5' >>"$static/status"
examine 0 "warning: peers: the host at 10.0.0.8:7263 has not answered for 1m30s" "warning: peers: the host at [2001:db8::9]:7263 has not answered for 5s"
sed -i '/^peer_silent/d; s/^peers=.*/&\npeers_error=Address already in use/' "$static/status"
examine 0 "warning: peers: cannot listen at 10.0.0.1:7263 (Address already in use): "
sed -i '/^peers/d' "$static/status"

sed -i 's/^uid=.*/uid=0/; s/^call_filter=.*/call_filter=no/' "$static/status"
examine 0 "warning: rights: dlockfs runs as root: " "warning: rights: dlockfs has no filter of system calls"
sed -i 's/^uid=.*/uid=4000000000/; /^call_filter=/d' "$static/status"
examine 0 "ok: rights: dlockfs runs as user 4000000000"
refused grep -q "filter of system calls" "$dir/doctor.out"
sed -i 's/^guard=.*/guard=none/' "$static/status"
examine 0 "warning: guard: there is none: if dlockfs hangs"
sed -i 's/^abilities=.*/abilities=queue,shared,stamps/' "$static/status"
examine 0 "warning: abilities: the store has queue,shared,stamps; calls that need another fail with ENOLCK"

# A store below a prefix, of which the status has a block of its own.
cp "$static/status" "$dir/status"
printf '\n%s\n' "prefix=cron" >>"$static/status"
printf '%s\n' "store=zookeeper://zk9:2181/jobs not connected" session=lost holders=0 fenced=3 >>"$static/status"
examine 1 "ok: session: connected" "warning: fenced: 2 open files" \
    "error: session: cron: lost: nothing is granted; see whether the servers can be reached: zookeeper://zk9:2181/jobs not connected" \
    "warning: fenced: cron: 3 open files"
expect_status 1 "$dlockctl" --mount "$dir/static" --json doctor >"$dir/json"
expect_equal "JSON, stores" '["connected","cron","lost"]' \
    "$(jq -c '[.status.session, .stores[0].prefix, .stores[0].session]' "$dir/json")"
mv "$dir/status" "$static/status"
chmod +t "$dir/static"
[ "$(</proc/sys/fs/protected_regular)" -eq 0 ] || examine 1 "error: kernel: the root of the mount is sticky"
chmod -t "$dir/static"
rm "$static/status"
examine 1 "error: status: .dlockfs/status: No such file"

# Real mounts: a directory that is locked, a daemon that hangs, one that is dead.
start_dlockfs A
"$dlockctl" --mount "$dir/A/" doctor >"$dir/doctor.out" || expect_equal status 1 $?
grep -q "ok: mount: $dir/A answers" "$dir/doctor.out"
mkdir "$dir/A/folder"
hold directory "$dir/A/folder"
expect directory held
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out" || expect_equal status 1 $?
grep -q "warning: directories: process [0-9]* flock has locked a directory" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
release directory

# The folder below the mount, and who has locked something in there.
if lsattr -d / >"$dir/out" 2>&1; then
    grep -qx "ok: below: without the mount nobody can lock files in its folder" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
fi
mkdir "$dir/C"
hold below "$dir/C/job"
expect below held
start_dlockfs C -o nonempty
expect_status 1 "$dlockctl" --mount "$dir/C" doctor >"$dir/doctor.out"
for line in "error: below: process [0-9]* flock has locked job in the folder below the mount, and excludes nobody in the mount; end it" \
    "warning: below: without the mount programs can lock files in $dir/C, on this host only; unmount it, and chattr +i it"; do
    grep -qx "$line" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
done
release below
stop_dlockfs C
rm "$dir/C/job"
chmod 555 "$dir/C"
start_dlockfs C -o nonempty
"$dlockctl" --mount "$dir/C" doctor >"$dir/doctor.out" || expect_equal status 1 $?
grep -qx "ok: below: without the mount nobody but root can lock files in its folder" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
stop_dlockfs C
# Only root can look there.
if setpriv --reuid=65534 --clear-groups "$dlockctl" --mount "$dir/A" doctor | finds below; then
    fail "a user has looked below the mount"
fi

# A user who stalls while the kernel has a directory locked keeps everybody out of it.
grep -qx "ok: names: can be made" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
expect_equal "names that are left" folder "$(find "$dir/A" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd' ')"
start stalls "$python" -u "$tests/system/dlockctl/stall.py" "$dir/A/folder"
expect stalls stalls
wait_until "$deadline" grep -q handle_userfault "/proc/$(pid stalls)/stack"
expect_status 1 "$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out"
grep -q "^error: names: nobody can make a name in $dir/A/folder: " "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
release stalls

pause A
# hung NAME COMMAND...: dlockctl, at the same time as the others.
hung() {
    local name=$1
    shift
    start "$name" "$dlockctl" --mount "$dir/A" "$@"
}
hung hung-ls ls
hung hung-show show job
hung hung-revoke revoke job
hung hung-wait wait job
hung hung-limited wait -w 0.5 job
hung hung-run run -n job true
expect_status 1 finish hung-limited "$prompt"
for name in ls show revoke wait run; do
    expect_status 72 finish "hung-$name" 60
    expect_equal "hung-$name" "dlockctl: $dir/A: the mount does not answer within 5 s; see: dlockctl doctor" "$(<"$dir/hung-$name.out")"
done
expect_status 72 timeout "$deadline" "$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out"
grep -q "error: mount: $dir/A does not answer" "$dir/doctor.out"
resume A

# Several mounts: the name says which, or --mount.
start_dlockfs B
expect_status 78 "$dlockctl" ls 2>"$dir/err"
grep -q "choose with --mount or DLOCKFS_MOUNT: .*$dir/A.*$dir/B" "$dir/err"
expect_equal "lines" 1 "$(wc -l <"$dir/err")"
expect_equal "by the name" hello "$("$dlockctl" run "$dir/B/job" echo hello)"
ln -s B "$dir/link"
expect_equal "by a link" hello "$("$dlockctl" --mount "$dir/link" run job echo hello)"

kill_dlockfs A
expect_status 72 timeout "$deadline" "$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out"
grep -q "error: mount: $dir/A: .*; start dlockfs again" "$dir/doctor.out"
for command in ls "show job" "wait job" "run job true"; do
    # shellcheck disable=SC2086
    expect_status 72 timeout "$deadline" "$dlockctl" --mount "$dir/A" $command 2>"$dir/err"
    grep -q 'dead' "$dir/err" || fail "$command: $(<"$dir/err")"
done
