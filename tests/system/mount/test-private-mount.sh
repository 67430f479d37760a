#!/bin/bash
# A user who is not root mounts with fusermount3 and has the locks for himself; everything works as on root's mount. With
# user_allow_other in /etc/fuse.conf others may use the mount, too.

# /etc/fuse.conf is replaced, and /dev/fuse may be: in a mount namespace of its own, that ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# Those of other tests, which are of root.
awk '$3 == "fuse.dlockfs" { print $2 }' /proc/self/mounts | xargs -r -n 1 umount --lazy

user=65534 # nobody: fusermount3 wants a name
as_user=(setpriv --reuid="$user" --regid="$user" --clear-groups)
requires command -v fusermount3
fuse_for_others
dlockfs=$(for_others "$dlockfs") # it starts itself anew, as that user, and in that folder
start_zookeeper

# launch_private HOST [ARGUMENT...]: like launch_dlockfs, but the user's daemon. Root cannot look into the mount.
launch_private() {
    local host=$1
    shift
    mkdir "$dir/$host"
    chown "$user" "$dir/$host"
    start "$host" env --chdir "$dir" "${as_user[@]}" "$dlockfs" --foreground --store "$store" -o new_root "$@" "$dir/$host"
    wait_until "$deadline" private_settled "$host"
    alive "$host" || fail "the daemon of $host ended: $(tail -n 1 "$dir/$host.out")"
}

private_settled() {
    gone "$1" || "${as_user[@]}" test -e "$dir/$1/.dlockfs/status"
}

# end_private HOST: as the user ends it.
end_private() {
    "${as_user[@]}" fusermount3 -u "$dir/$1"
    finish "$1"
    not_mounted "$dir/$1"
}

# user_call NAME FILE STEP...
user_call() {
    local name=$1
    shift
    start "$name" "${as_user[@]}" "$python" -u "$(for_others "$tests/lib/calls.py")" "$@"
}

printf '%s\n' '[locks "signal*"]' 'on_lost = SIGTERM' 'on_revoke = SIGUSR1' >"$dir/A.ini"
echo "#user_allow_other" >"$dir/fuse.conf"
mount --bind "$dir/fuse.conf" /etc/fuse.conf
launch_private A --config "$dir/A.ini"
launch_private B
# Private: not even root gets in, and the kernel knows whose it is.
refused ls "$dir/A" 2>"$dir/err"
grep -q 'Permission denied' "$dir/err"
grep " $dir/A fuse.dlockfs" /proc/self/mounts | finds "user_id=$user,"
for command in ls doctor "run job true"; do
    # shellcheck disable=SC2086
    expect_status 77 "$dlockctl" --mount "$dir/A" $command 2>"$dir/err"
    grep -qx "dlockctl: $dir/A: was mounted by the user $user, without allow_other: .* not even root; run dlockctl as that user" "$dir/err" ||
        fail "$command: $(<"$dir/err")"
done

# flock, over both mounts; also when another program has taken over.
start holder "${as_user[@]}" flock "$dir/A/job" sh -c 'echo held; exec sleep infinity'
expect holder held
send_signal A USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.out"
expect_status 1 "${as_user[@]}" flock -n "$dir/B/job" true
start waiter "${as_user[@]}" flock "$dir/B/job" true
wait_claims job 2
release holder
finish waiter

# Exclusive open waits.
user_call opener "$dir/A/excl" excl await="$dir/close" close hold
expect opener "excl ok"
user_call refused "$dir/B/excl" excl-nb
expect refused "excl-nb EEXIST"
user_call second "$dir/B/excl" excl hold
wait_claims excl 2
go close
expect second "excl ok"
release opener second

# Record locks.
user_call first "$dir/A/ranges" open w:0-9 await="$dir/unlock" u:0-9 hold
expect first "w:0-9 ok"
user_call other "$dir/B/ranges" open w-nb:5-14 w:10-19 w:5-9 hold
expect other "w:10-19 ok"
said other "w-nb:5-14 EAGAIN"
go unlock
expect other "w:5-9 ok"
release first other

# dlockctl, and the signals of on_revoke and on_lost.
control=("${as_user[@]}" "$dlockctl" --mount "$dir/A")
user_call loser "$dir/A/signal" catch=SIGUSR1 catch=SIGTERM open ex token hold
wait_until "$deadline" grep -q '^token [0-9]' "$dir/loser.out"
"${control[@]}" ls >"$dir/ls"
grep -q '^signal *held' "$dir/ls"
"${control[@]}" revoke signal >"$dir/revoke"
wait_until "$deadline" grep -q '^caught SIGUSR1' "$dir/loser.out"
"${as_user[@]}" "$dlockctl" --mount "$dir/B" break signal --yes >"$dir/break"
wait_until "$deadline" grep -q '^caught SIGTERM' "$dir/loser.out"
"${control[@]}" run signal -- sh -c 'echo "$DLOCK_NAME"' >"$dir/run"
expect_equal "dlockctl run" signal "$(<"$dir/run")"
release loser

# Which mount dlockctl takes is decided by root and its caller, not by other users.
expect_status 72 "$dlockctl" run job true 2>"$dir/err"
grep -q 'no dlockfs is mounted but those of other users' "$dir/err"
expect_status 78 "${as_user[@]}" "$dlockctl" ls 2>"$dir/err"
grep -qF "there are 2 of dlockfs; choose with --mount or DLOCKFS_MOUNT: $dir/A or $dir/B" "$dir/err"
start_dlockfs R -o mode=0755
"$dlockctl" run job sh -c 'test -e "$1/R/job"' - "$dir"
end_private B
expect_status 78 "${as_user[@]}" "$dlockctl" ls 2>"$dir/err"
setpriv --reuid=12345 --clear-groups "$dlockctl" ls >"$dir/ls"
stop_dlockfs R
end_private A

# Others: where the administrator allows it, unless the configuration says no.
echo user_allow_other >"$dir/fuse.conf"
launch_private C
flock -n "$dir/C/job" true
end_private C
launch_private D -o allow_other=no
refused ls "$dir/D" 2>"$dir/err"
end_private D

# With auto_unmount nothing stays mounted when the daemon is killed.
launch_private E -o auto_unmount
kill_dlockfs E
wait_until "$deadline" not_mounted "$dir/E"

# libfuse forks fusermount3, and allocates memory in the child, before the daemon has a second thread.
real=$(command -v fusermount3)
touch "$dir/real"
mount --bind "$real" "$dir/real"
cat >"$dir/stand-in" <<END
#!/bin/sh
ls /proc/\$PPID/task >"$dir/F.threads"
exec "$dir/real" "\$@"
END
chmod +x "$dir/stand-in"
touch "$dir/F.threads"
chown "$user" "$dir/F.threads"
mount --bind "$dir/stand-in" "$real"
launch_private F
expect_equal "threads of the daemon that mounts" 1 "$(wc -l <"$dir/F.threads")"
umount "$real"
end_private F
