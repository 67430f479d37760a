#!/bin/bash
# The Debian package: built, without errors and warnings for lintian, installed, upgraded and removed where no systemd runs: in a root
# that is this machine's as it is, and whatever is written there is gone with the test. What its service does, package.sh tells. And the
# source package, for which the same holds.
export own_users=no # no daemon runs
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v dpkg-buildpackage dh lintian
mkdir "$dir"/{package,root,over}
package=$(DEB_BUILD_OPTIONS="noopt nocheck parallel=2" "$source_dir/etc/debian/build.sh" "$dir/package" 2>"$dir/build.out")
source_package=$("$source_dir/etc/debian/build.sh" --source "$dir/package" 2>"$dir/source.out")
expect_equal "the format" "3.0 (quilt)" "$(sed -n 's/^Format: //p' "$source_package")"
TMPDIR=$dir lintian --fail-on error,warning "$package" "$source_package" # it leaves files there

mount -t tmpfs none "$dir/over" # dpkg waits for the disk after each file
mkdir "$dir"/over/{changes,work}
mount -t overlay -o "lowerdir=/,upperdir=$dir/over/changes,workdir=$dir/over/work" none "$dir/root"
# Nothing that this machine starts by itself, or forbids packages to start.
rm -rf "$dir"/root/etc/systemd/system/*.wants "$dir/root/usr/sbin/policy-rc.d" "$dir/root/etc/dlockfs.ini"
cp "$package" "$dir/root/root/dlockfs.deb"
within() {
    chroot "$dir/root" "$@"
}
files() {
    within find /etc /lib /usr /var -name '*dlockfs*' -o -name '*dlockctl*'
}
before=$(files)
within dpkg --no-triggers -i /root/dlockfs.deb >"$dir/install.out" 2>&1
version=$(dpkg-deb -f "$package" Version)
expect_equal "the program" "dlockfs ${version%-1}" "$(within /usr/sbin/dlockfs --version | head -n 1)"
within dlockctl --version >"$dir/version.out"
dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/doc/dlockfs/changelog.gz | gunzip | cmp - "$source_dir/CHANGELOG.md" ||
    fail "CHANGELOG.md is not in the package"
for page in dlockfs.8 dlockfs-keeper.8 dlockctl.1 dlockfs.ini.5 mount.fuse.dlockfs.8; do
    within test -e "/usr/share/man/man${page##*.}/$page.gz"
done
within test -x /sbin/mount.fuse.dlockfs
within test -e /etc/systemd/system/multi-user.target.wants/dlockfs.service

# An upgrade leaves the configuration; a removal, too; a purge leaves nothing.
echo '# ours' >>"$dir/root/etc/dlockfs.ini"
within dpkg --no-triggers -i /root/dlockfs.deb >"$dir/upgrade.out" 2>&1
! grep 'does not start again' "$dir/upgrade.out" || fail "the configuration is not what the service needs"
sed -i '/^url =/d' "$dir/root/etc/dlockfs.ini" # as it was installed once
within dpkg --no-triggers -i /root/dlockfs.deb >"$dir/upgrade.out" 2>&1
grep -q 'error: /etc/dlockfs.ini: no url in \[store\], expected' "$dir/upgrade.out" || fail "not told: $(<"$dir/upgrade.out")"
grep -q 'does not start again' "$dir/upgrade.out" || fail "not told: $(<"$dir/upgrade.out")"
within dpkg --no-triggers -r dlockfs >"$dir/remove.out" 2>&1
expect_equal "the configuration" "# ours" "$(within tail -n 1 /etc/dlockfs.ini)"
! within test -e /usr/sbin/dlockfs || fail "not removed"
within dpkg --no-triggers -P dlockfs >"$dir/purge.out" 2>&1
expect_equal "what is left" "$before" "$(files)"
