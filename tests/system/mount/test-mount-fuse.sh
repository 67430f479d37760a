#!/bin/bash
# mount -t fuse.dlockfs and a line of fstab mount the installed program, with its own keys and those of FUSE as options.

# mount(8) clears PATH, so the program has to be where programs are installed: in a mount namespace of its own, that
# ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v mount.fuse3
start_zookeeper
mkdir "$dir/bin" "$dir/A" "$dir/B"
ln -s "$dlockfs" "$dir/bin/dlockfs"
mount --bind "$dir/bin" /usr/local/sbin

mount -t fuse.dlockfs "$store" "$dir/A" -o idle=5s,session_timeout=30s,mode=0755,noexec,new_root
process_record "$dir" daemon-a "$(daemons_of "$dir/A")"
is_mounted "$dir/A"
expect_equal "mode" 755 "$(stat -c %a "$dir/A")"
grep " $dir/A fuse.dlockfs" /proc/self/mounts | finds noexec

mount -t fuse.dlockfs none "$dir/B" -o "url=$store,allow_other"
process_record "$dir" daemon-b "$(daemons_of "$dir/B")"
is_mounted "$dir/B"

# As in mounting.md, for systems whose network comes later.
echo "$store $dir/C fuse.dlockfs x-mount.mkdir,_netdev,nofail,nosuid,nodev,noexec,session_timeout=30s 0 0" >"$dir/fstab"
mount --fstab "$dir/fstab" "$dir/C"
grep " $dir/C fuse.dlockfs" /proc/self/mounts | finds noexec
process_record "$dir" daemon-c "$(daemons_of "$dir/C")"
is_mounted "$dir/C"

hold holder "$dir/A/job"
expect holder held
for host in A B C; do
    expect_status 1 flock -n "$dir/$host/job" true
done
release holder
for host in C B A; do
    comes_free "$dir/$host/job"
    umount "$dir/$host"
done
for daemon in a b c; do
    wait_until "$deadline" gone "daemon-$daemon"
done

# What is wrong fails here too, and nothing is mounted.
refused mount -t fuse.dlockfs none "$dir/A" -o idle=whenever 2>"$dir/err"
grep -q idle "$dir/err"
refused mount -t fuse.dlockfs consul://localhost "$dir/A" 2>"$dir/err"
refused mount -t fuse.dlockfs none "$dir/A" -o no_such_option=1 2>"$dir/err"
# The helper of mount(8), which is asked only to look.
ln -s "$dlockfs" "$dir/bin/mount.fuse.dlockfs"
"$dir/bin/mount.fuse.dlockfs" "$store" "$dir/A" -f -o rw,noexec,idle=5s
refused "$dir/bin/mount.fuse.dlockfs" "$store" "$dir/A" -f -o idle=whenever 2>"$dir/err"
refused "$dir/bin/mount.fuse.dlockfs" "$store" "$dir/A" -f -o sesion_timeout=5s 2>"$dir/err"
grep -q 'sesion_timeout=5s: expected a key of the configuration or a mount option' "$dir/err"
expect_equal "mounts" "" "$(mounts_below "$dir")"
