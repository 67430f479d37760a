#!/bin/bash
# Makes the Debian package: etc/debian/build.sh FOLDER puts dlockfs_VERSION_ARCHITECTURE.deb there, and that of
# dlockfs-web.
#
# Builds in a copy of the source tree. What it needs is in Build-Depends of etc/debian/control, and build-essential. The version is that of
# meson.build. Options of dpkg-buildpackage (DEB_BUILD_OPTIONS=noopt ...) come from the environment.

set -euo pipefail

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
target=$(cd "$1" && pwd)
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/dlockfs-package.XXXXXX")
trap 'rm -rf -- "$folder"' EXIT

# What the package is made of; build folders that lie in the tree stay where they are.
mkdir "$folder/dlockfs"
cd "$source_dir"
cp -a LICENSE README.md etc fs meson.build meson_options.txt src tests "$folder/dlockfs"
cd "$folder/dlockfs"
mv etc/debian debian
version=$(sed -n "/^ *version: '/{s/.*version: '\([0-9.]*\)'.*/\1/p;q}" meson.build)
sed -i "1s/([^)]*)/($version)/" debian/changelog

dpkg-buildpackage --build=binary --no-sign
mv "$folder"/dlockfs_*.deb "$folder"/dlockfs-web_*.deb "$target"
