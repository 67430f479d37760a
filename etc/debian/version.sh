#!/bin/bash
# Prints the version of a package that is made of this source tree: etc/debian/version.sh
#
#     0.1.0                                       a tree without git, as a release's archive has it, or the commit that a tag v0.1.0 names
#     0.1.0~git20261129.213005.1dcbafae           a commit before that tag: sorts by its date, and before the release
#     0.1.0+git20261129.213005.1dcbafae           a commit after that tag
#     0.1.0~git20261129.214500.1dcbafae.modified  a tree with changes that are not committed: the date is now
#
# The first number is that of meson.build. Dates, which are UTC, are there in a shallow clone too; a number of commits would not be.

set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Who builds as another user than whose the tree is knows whose it is.
in_git() {
    git -c safe.directory='*' -C "$source_dir" "$@"
}

release=$(sed -n "/^ *version: '/{s/.*version: '\([0-9.]*\)'.*/\1/p;q}" "$source_dir/meson.build")
if [ ! -e "$source_dir/.git" ]; then
    echo "$release"
    exit
fi
if ! commit=$(in_git rev-parse --short=8 HEAD); then
    echo "$0: git does not tell the commit of $source_dir, so the version is that of the release, $release" >&2
    echo "$release"
    exit
fi

tagged='~'
! in_git merge-base --is-ancestor "v$release" HEAD 2>/dev/null || tagged=+
if [ -n "$(in_git status --porcelain)" ]; then
    echo "$release${tagged}git$(date -u +%Y%m%d.%H%M%S).$commit.modified"
elif [ "$tagged" = + ] && [ "$(in_git rev-parse "v$release^{commit}")" = "$(in_git rev-parse HEAD)" ]; then
    echo "$release"
else
    echo "$release${tagged}git$(TZ=UTC in_git log -1 --format=%cd --date=format-local:%Y%m%d.%H%M%S).$commit"
fi
