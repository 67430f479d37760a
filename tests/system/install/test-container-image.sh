#!/bin/bash
# The image of etc/containers/Containerfile: buildah makes it, on a new Debian 12, with nothing in it of what built it. The daemon in it
# has the capabilities of containers.md, mounts for the host and for other containers, and doctor is content with it.

# Mounts are shared in here, and end with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount --propagation private -- "$0"
fi
export own_users=no # the image has a user dlockfs of its own
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/machine.sh
. "$tests/lib/machine.sh"

requires command -v buildah mmdebstrap

# buildah, with all that it keeps in the folder of the test, and where the kernel has no control groups for it.
image() {
    BUILDAH_ISOLATION=chroot TMPDIR=$dir buildah --root "$dir/images" --runroot "$dir/running" --storage-driver overlay "$@"
}

# Debian, in place of that of a registry.
make_debian bookworm
base=$(image from scratch)
image add --quiet "$base" "$dir/root" / >"$dir/add.out"
image commit --quiet "$base" localhost/debian >"$dir/commit.out"
image rm "$base" >"$dir/rm.out"
debian_size=$(du -sm "$dir/root" | cut -f1)
umount "$dir/root"
image build --quiet --pull-never --network host --layers=false --build-arg DEBIAN=localhost/debian --build-arg VERSION=9.9.9 \
    --build-arg DEB_BUILD_OPTIONS="noopt nocheck parallel=2" -f "$source_dir/etc/containers/Containerfile" -t localhost/dlockfs \
    "$source_dir" >"$dir/build.log" 2>&1 || fail "$(tail -n 3 "$dir/build.log")"
container=$(image from --pull-never localhost/dlockfs)
root=$(image mount "$container")
cleanup_fn image umount "$container"
expect_equal "the program" "dlockfs 9.9.9" "$(chroot "$root" dlockfs --version | head -n 1)"
image inspect --type image --format '{{.OCIv1.Config.Cmd}}' localhost/dlockfs >"$dir/command"
expect_equal "what is run" "[dlockfs --foreground --require-url /run/dlockfs/locks]" "$(<"$dir/command")"
for path in source package usr/bin/gcc usr/bin/meson usr/bin/systemctl; do
    [ ! -e "$root/$path" ] || fail "/$path is in the image"
done
size=$(($(du -sm "$root" | cut -f1) - debian_size))
[ "$size" -le 40 ] || fail "it adds $size MiB to Debian"

# What a container's runtime does: the volume, /proc, the device, and no other capabilities than those it gives to all, and these.
capabilities=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot,+setfcap
more=+sys_admin,+linux_immutable,+sys_ptrace
share=$dir/share
mkdir "$share" "$root/run/dlockfs"
mount --bind "$share" "$share"
mount --make-shared "$share"
mknod "$root/dev/fuse" c 10 229
mount --bind "$share" "$root/run/dlockfs"
mount -t proc proc "$root/proc"
cleanup_fn umount "$root/proc" "$root/run/dlockfs"
printf '%s\n' '[store]' "url = local:" >"$root/etc/dlockfs.ini"
contained() {
    unshare --mount --propagation slave -- setpriv --bounding-set "$capabilities" chroot "$root" "$@"
}
start daemon unshare --mount --propagation unchanged -- setpriv --bounding-set "$capabilities,$more" chroot "$root" \
    dlockfs --foreground --require-url /run/dlockfs/locks
wait_until "$deadline" is_mounted "$share/locks"
hold holder "$share/locks/job"
expect holder held
expect_status 1 contained flock -n /run/dlockfs/locks/job true
contained dlockctl --mount /run/dlockfs/locks ls >"$dir/ls"
grep -q '^job .* held' "$dir/ls" || fail "$(<"$dir/ls")"
contained dlockctl --mount /run/dlockfs/locks doctor >"$dir/doctor" || fail "$(<"$dir/doctor")"
expect_equal "as whom it runs" "$(awk -F: '$1 == "dlockfs" { print $3 }' "$root/etc/passwd")" \
    "$(sed -n 's/^uid=//p' "$share/locks/.dlockfs/status")"
release holder
contained flock -n /run/dlockfs/locks/job true
kill -TERM "$(pid daemon)"
finish daemon
not_mounted "$share/locks"
