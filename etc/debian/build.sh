#!/bin/bash
# Makes the Debian package:
#
#     etc/debian/build.sh [--build-dep] FOLDER    puts dlockfs_VERSION_ARCHITECTURE.deb there
#     etc/debian/build.sh --source FOLDER         puts the source package there, as a sponsor of Debian takes it
#
# The one line on standard output is the path of what was made. --build-dep, as root, first installs what Build-Depends of
# etc/debian/control names for this release of Debian. The version is what etc/debian/version.sh prints, or DLOCKFS_PACKAGE_VERSION of
# the environment. Builds in a copy of the source tree. Options of dpkg-buildpackage (DEB_BUILD_OPTIONS="nocheck noopt" ...) come from
# the environment, too.

set -euo pipefail

build_dep=
kind=binary
case $#:${1:-} in
    2:--build-dep) build_dep=yes ;;
    2:--source) kind=source ;;
    1:*) ;;
    *) set -- "" ;;
esac
if [ ! -d "${!#}" ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
target=$(cd "${!#}" && pwd)
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
version=${DLOCKFS_PACKAGE_VERSION:-$("$source_dir/etc/debian/version.sh")}
folder=$(mktemp -d "${TMPDIR:-/tmp}/dlockfs-package.XXXXXX")
trap 'rm -rf -- "$folder"' EXIT
chmod 755 "$folder" # _apt reads there

# What the package is made of; build folders that lie in the tree stay where they are.
mkdir "$folder/dlockfs-$version"
cd "$source_dir"
cp -a CHANGELOG.md LICENSE README.md SECURITY.md etc fs meson.build meson_options.txt src tests "$folder/dlockfs-$version"
cd "$folder/dlockfs-$version"
find . -name __pycache__ -prune -exec rm -r {} +
mv etc/debian "$folder/debian"
if [ "$kind" = source ]; then
    tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner -cJf "$folder/dlockfs_$version.orig.tar.xz" "dlockfs-$version"
fi
mv "$folder/debian" debian
sed -i "1s/([^)]*)/($version-1)/; s/^\( -- .*>  \).*/\1$(date -uR)/" debian/changelog

if [ -n "$build_dep" ]; then
    DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --no-install-recommends "$PWD" >&2
fi
dpkg-buildpackage --build=$kind --no-sign >&2
if [ "$kind" = source ]; then
    mv "$folder"/dlockfs_*.{dsc,tar.xz} "$target"
    ls "$target"/dlockfs_"$version"-1.dsc
else
    rm -f "$folder"/*-dbgsym_*
    mv "$folder"/*.deb "$target"
    ls "$target"/dlockfs_"$version"-1_*.deb
fi
