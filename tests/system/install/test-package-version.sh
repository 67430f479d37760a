#!/bin/bash
# The version of a package grows with each commit, and with each build of what is not committed; apt takes it for what it is: earlier
# than the release that is to come, or later than the one that was.
export own_users=no # no daemon runs
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v git dpkg
tree=$dir/tree
mkdir -p "$tree/etc/debian"
cp "$source_dir/meson.build" "$tree"
cp "$source_dir/etc/debian/version.sh" "$tree/etc/debian"
release=$("$dlockfs" --version | sed -n '1s/^dlockfs //p')

version() {
    "$tree/etc/debian/version.sh"
}
# grows: the version, which is greater than the one before.
last=0
grows() {
    local next
    next=$(version)
    dpkg --compare-versions "$next-1" gt "$last-1" || fail "$next is not later than $last"
    last=$next
}
in_git() {
    git -C "$tree" -c user.name=Test -c user.email=test@example.com -c commit.gpgsign=false -c tag.gpgsign=false "$@" >/dev/null
}
# commit DATE
commit() {
    GIT_COMMITTER_DATE="$1 +0200" in_git commit --quiet --allow-empty -m "$1"
}

expect_equal "without git" "$release" "$(version)"

in_git init --quiet
in_git add .
commit 2020-05-04T01:30:00
grows
[[ $last =~ ^"$release~git20200503.233000."[0-9a-f]{8}$ ]] || fail "$last"
commit 2020-05-04T01:30:01
grows
before=$last
echo >>"$tree/meson.build"
grows
[[ $last =~ ^"$release~git20"[2-9][0-9]{5}\.[0-9]{6}\.[0-9a-f]{8}\.modified$ ]] || fail "$last"
in_git checkout --quiet meson.build
expect_equal "what is committed" "$before" "$(version)"

# The release, and what comes after it.
last=$before
in_git tag "v$release"
grows
expect_equal "of the tag" "$release" "$last"
commit 2020-05-04T01:30:02
grows
[[ $last =~ ^"$release+git20200503.233002."[0-9a-f]{8}$ ]] || fail "$last"

# A clone without the commits before, and without tags.
git clone --quiet --no-tags --depth=1 "file://$tree" "$dir/shallow"
expect_equal "of a shallow clone" "${last/+/\~}" "$("$dir/shallow/etc/debian/version.sh")"

# Whose tree it is does not matter.
chown -R 65534:65534 "$tree"
expect_equal "of another user's tree" "$last" "$(version)"

# Where git tells nothing, it is said.
echo nonsense >"$tree/.git/HEAD"
expect_equal "of a tree that is broken" "$release" "$("$tree/etc/debian/version.sh" 2>"$dir/broken.err")"
grep -q "so the version is that of the release, $release" "$dir/broken.err" || fail "$(<"$dir/broken.err")"
