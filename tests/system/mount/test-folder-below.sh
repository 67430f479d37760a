#!/bin/bash
# The folder that is mounted upon: none that dlockfs needs itself, and none that has something in it, unless that is asked for.

# In a mount namespace that ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

program=("$dlockfs") # which refused_with runs

# refused_with LINE ARGUMENT...: in the foreground and in the background, and nothing is mounted.
refused_with() {
    local line=$1 mode
    shift
    for mode in --foreground ""; do
        # shellcheck disable=SC2086
        refused timeout --kill-after=1 "$deadline" "${program[@]}" $mode --store local: "$@" 2>"$dir/err"
        expect_equal "what $* says" "dlockfs: error: $line" "$(<"$dir/err")"
        ! grep -q "${*: -1} fuse.dlockfs " /proc/self/mounts || fail "${*: -1} is mounted"
    done
}

# What dlockfs needs is refused with nonempty, too: by its path, by another one, and as the folder of a library.
# A root directory of its own, whose /etc is a copy, so that no other process is in the way.
mkdir -p "$dir/root"/{dev,proc,usr,etc,own,var,run}
ln -s ../run "$dir/root/var/run"
cp -P /bin /sbin /lib /lib64 "$dir/root" 2>/dev/null || true # symbolic links into /usr
[ -L "$dir/root/lib" ] || skip "requires: /lib is a symbolic link"
cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$dir/root/etc"
for folder in dev proc usr; do
    mount --rbind "/$folder" "$dir/root/$folder"
done
cp "$dlockfs" "$dir/root/own/dlockfs"
program=(chroot "$dir/root" /own/dlockfs)
behind="which would be behind its own mount, expected an empty folder such as /run/dlocks"
for options in "" "-o nonempty"; do
    # shellcheck disable=SC2086
    refused_with "/etc: dlockfs itself needs /etc, $behind" $options /etc
done
refused_with "/own: dlockfs itself needs /own/dlockfs, $behind" -o nonempty /own
refused_with "/var: dlockfs itself needs /var/lib/sss, $behind" -o nonempty /var
refused_with "/run: dlockfs itself needs /run/systemd/journal, $behind" -o nonempty /run
refused_with "/own: dlockfs itself needs /own/dlockfs, $behind" -o nonempty /own/../own/.
# The same folder has two names.
mkdir -p "$dir/root/above/etc"
cp -r "$dir/root/etc" "$dir/root/above"
mount --bind "$dir/root/above/etc" "$dir/root/etc"
refused_with "/above/etc: dlockfs itself needs /etc, $behind" -o nonempty /above/etc
program=("$dlockfs")

# Something in the folder.
mkdir "$dir/full"
touch "$dir/full/.job"
refused_with "$dir/full: is not empty, and the mount would hide what is in there, such as .job; expected an empty folder, or -o nonempty" "$dir/full"
start_dlockfs full -o nonempty,idle=5s
grep -qxF "dlockfs: warning: $dir/full: is not empty, and the mount hides what is in there, such as .job" "$dir/full.log"
test ! -e "$dir/full/.job"
flock "$dir/full/.job" true
# Another program goes on with it.
send_signal full USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/full.log"
stop_dlockfs full
rm "$dir/full/.job"

# A folder that was missing is made, and taken away: when the mount fails, and when it ends.
absent() {
    [ ! -e "$dir/$1" ]
}
refused_with "-o no_such: expected a key of the configuration or a mount option" -o no_such "$dir/new"
absent new || fail "a mount that failed has left its folder"
# Without a device, as in a container.
for mode in --foreground ""; do
    # shellcheck disable=SC2086
    refused timeout "$deadline" unshare --mount sh -c 'mount --bind /dev/null /dev/fuse && exec "$@"' - "$dlockfs" $mode "$dir/new" 2>"$dir/err"
    grep -qF "$dir/new: cannot mount here: " "$dir/err" || fail "$(<"$dir/err")"
    absent new || fail "a mount that failed has left its folder"
done
start new "$dlockfs" --foreground "$dir/new"
wait_until "$deadline" is_mounted "$dir/new"
send_signal new TERM
finish new
absent new || fail "a daemon that ended has left its folder"
# Who unmounts may mount there again at once.
start new "$dlockfs" --foreground "$dir/new"
wait_until "$deadline" is_mounted "$dir/new"
umount "$dir/new"
finish new
# With --lazy the daemon goes on while a program has files of it open: what is held is held. Then it ends, and says why.
start new "$dlockfs" --foreground "$dir/new"
wait_until "$deadline" is_mounted "$dir/new"
hold holder "$dir/new/job"
expect holder held
umount --lazy "$dir/new"
not_mounted "$dir/new"
! gone new || fail "the daemon has ended, and a lock is held"
release holder
finish new
grep -qx "dlockfs: $dir/new was unmounted, and is in use no more: ends" "$dir/new.out"

# Without the mount nobody can lock there: not after its end, nor when it was made anew, and unmounted by somebody else.
requires command -v chattr
immutable() {
    lsattr -d "$1" | finds '^[^ ]*i'
}
immutable "$dir/new" || skip "requires: a file system that knows immutable folders"
refused flock "$dir/new/job" true 2>"$dir/err"
chattr -i "$dir/new"
rmdir "$dir/new"
start_dlockfs found
grep -qxF "dlockfs: $dir/found: the folder below the mount is immutable from now on, so that without the mount nobody can lock there; chattr -i undoes that" "$dir/found.log"
send_signal found USR2
wait_until "$deadline" grep -q ' goes on with version ' "$dir/found.log"
stop_dlockfs found
immutable "$dir/found"
refused flock "$dir/found/job" true 2>"$dir/err"
start_dlockfs found
flock "$dir/found/job" true
stop_dlockfs found
expect_equal "how often that is said" 1 "$(grep -c immutable "$dir/found.log")"
# A mount that fails changes nothing, and nor does one with nonempty.
chattr -i "$dir/found"
refused_with "-o no_such: expected a key of the configuration or a mount option" -o no_such "$dir/found"
! immutable "$dir/found" || fail "immutable though the mount failed"
start_dlockfs found -o nonempty
stop_dlockfs found
! immutable "$dir/found" || fail "immutable though with nonempty"
# A file system that nobody can write to needs nothing of that.
mkdir -p "$dir/readonly"
mount -t tmpfs none "$dir/readonly"
mkdir "$dir/readonly/locks"
mount -o remount,ro "$dir/readonly"
start reader "$dlockfs" --foreground "$dir/readonly/locks"
expect reader "dlockfs: $dir/readonly/locks is ready; local: this host only (no server configured)"
expect_equal "lines" 1 "$(wc -l <"$dir/reader.out")"
"$dlockctl" --mount "$dir/readonly/locks" doctor | finds -x "ok: below: without the mount nobody can lock files in its folder"
send_signal reader TERM
finish reader
# A user, who has no such right: nobody can write there.
user=65534
mkdir "$dir/private"
chown "$user" "$dir/private"
fuse_for_others
of_user=$(for_others "$dlockfs")
for mode in 0775 0555; do
    chmod "$mode" "$dir/private"
    : >"$dir/private.out"
    start private setpriv --reuid=$user --regid=$user --clear-groups "$of_user" --foreground "$dir/private"
    expect private "dlockfs: $dir/private is ready; local: this host only (no server configured)"
    send_signal private TERM
    finish private
    expect_equal "mode after that of $mode" 555 "$(stat -c %a "$dir/private")"
done
refused setpriv --reuid=$user --regid=$user --clear-groups flock "$dir/private/job" true 2>"$dir/err"

# Who has locked something in the folder is named.
mkdir "$dir/locked"
hold one "$dir/locked/job"
expect one held
process=$(awk '$2 == "FLOCK" { print $5, $6 }' /proc/locks | awk -F'[ :]' -v inode="$(stat -c %i "$dir/locked/job")" '$4 == inode { print $1 }')
refused_with "$dir/locked: is not empty, and the mount would hide what is in there, such as job; process $process flock has locked job there, and excludes nobody in the mount; expected an empty folder, or -o nonempty" "$dir/locked"
start_dlockfs locked -o nonempty
grep -qxF "dlockfs: warning: $dir/locked: process $process flock has locked job there, and excludes nobody in the mount" "$dir/locked.log"
stop_dlockfs locked
release one
rm "$dir/locked/job"
hold one "$dir/locked"
expect one held
start_dlockfs locked
grep -q "^dlockfs: warning: $dir/locked: process [0-9]* flock has locked the folder itself there, and excludes nobody in the mount$" "$dir/locked.log" ||
    fail "$(<"$dir/locked.log")"
stop_dlockfs locked
