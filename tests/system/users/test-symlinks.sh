#!/bin/bash
# Symbolic links that a stranger makes in a directory of style = file, and on the way of a mount point: nobody gets through them to a file of
# this host alone, and nothing is created, made immutable or removed at their end. To read them goes on working.

# In a mount namespace that ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires command -v chattr

stranger=65534 # fusermount3 wants a name
as_stranger() {
    setpriv --reuid=$stranger --regid=$stranger --clear-groups timeout "$deadline" "$@"
}
as_root() {
    timeout "$deadline" "$@"
}
# loops COMMAND...: fails because of a link.
loops() {
    refused "$@" 2>"$dir/err"
    grep -q "Too many levels of symbolic links" "$dir/err" || fail "$*: $(<"$dir/err")"
}
# bars_links FOLDER [FILE]: its mount follows none, as the list of a process says.
bars_links() {
    awk -v folder="$1" '$5 == folder && $6 ~ /nosymfollow/ { found = 1 } END { exit !found }' "${2:-/proc/self/mountinfo}"
}

mount --make-rshared /
start other unshare --mount --propagation slave sh -c 'echo there; exec sleep infinity'
expect other there
outside=$dir/outside
mkdir -m 777 "$outside"
printf '%s\n' '[mount]' 'directories = spool' '[locks "spool"]' 'style = file' >"$dir/spool.ini"
start_zookeeper
for host in A B; do
    start_dlockfs "$host" --config "$dir/spool.ini"
    bars_links "$dir/$host" || fail "the mount of $host follows links"
    bars_links "$dir/$host" "/proc/$(pid other)/mountinfo" || fail "the mount of $host follows links in another namespace"
done

# A file of each host, or of the stranger, instead of the lock.
as_stranger ln -s "$outside/job" "$dir/A/spool/job"
as_stranger ln -s "$outside" "$dir/A/spool/folder"
as_stranger ln -s ../.. "$dir/A/spool/up"
for host in A B; do
    spool=$dir/$host/spool
    expect_equal "the link on $host" "$outside/job" "$(readlink "$spool/job")"
    loops as_root flock -n "$spool/job" true
    loops as_root sh -c ': >"$0"' "$spool/job"
    loops as_root ls "$spool/folder/"
    loops as_root ls "$spool/up/"
    for name in job folder/job folder/new/job up/job; do
        expect_status 66 "$dlockctl" --mount "$dir/$host" run "spool/$name" true 2>"$dir/err"
        grep -q "spool/$name: a symbolic link, or another mount, is on the way" "$dir/err" || fail "$(<"$dir/err")"
    done
    "$dlockctl" --mount "$dir/$host" run spool/own true
done
expect_equal "what was made at the ends of the links" "" "$(ls -A "$outside")"
[ ! -e "$dir/job" ] || fail "a file was made above the mount"
"$dlockctl" --mount "$dir/B" show spool/job | finds symlink

# What is mounted upon a directory there is not the mount.
as_stranger mkdir "$dir/B/spool/upon"
mount -t tmpfs none "$dir/B/spool/upon"
expect_status 66 "$dlockctl" --mount "$dir/B" run spool/upon/job true 2>"$dir/err"
expect_equal "what was made in there" "" "$(ls -A "$dir/B/spool/upon")"
umount "$dir/B/spool/upon"

# A mount that a daemon without this has made gets the option from the next one.
mount -o remount,bind,symfollow "$dir/A"
! bars_links "$dir/A" || fail "the option is still there"
send_signal A USR2
wait_until "$deadline" bars_links "$dir/A"
wait_until "$deadline" grep -q ' goes on with version ' "$dir/A.log"
loops as_root flock -n "$dir/A/spool/job" true

# A mount of fusermount3 cannot have it: no link leads away, whoever has made it.
fuse_for_others
mkdir "$dir/private"
chown "$stranger" "$dir/private"
start private setpriv --reuid=$stranger --regid=$stranger --clear-groups "$(for_others "$dlockfs")" --foreground --store "$store" \
    --config "$dir/spool.ini" "$dir/private"
wait_until "$deadline" grep -q ' is ready; ' "$dir/private.out"
as_stranger ln -s "someone@host.1:2" "$dir/private/spool/editor"
expect_equal "a link that stays" "someone@host.1:2" "$(as_stranger readlink "$dir/private/spool/editor")"
for target in "$outside/job" ../.. .. a/b; do
    refused as_stranger ln -s "$target" "$dir/private/spool/other" 2>"$dir/err"
    grep -q "Operation not permitted" "$dir/err" || fail "$target: $(<"$dir/err")"
done
for name in job folder/job up/job; do
    loops as_stranger sh -c ': >"$0"' "$dir/private/spool/$name"
done
refused as_stranger readlink "$dir/private/spool/job"
expect_equal "what was made at the ends of the links" "" "$(ls -A "$outside")"
send_signal private TERM
finish private

# A mount point: a link of another user is refused, wherever it is in the path; what a link leads to stays as it is.
immutable() {
    lsattr -d "$1" | finds '^[^ ]*i'
}
mkdir -m 777 "$dir/theirs"
mkdir -p "$dir/precious/inner"
as_stranger ln -s "$dir/precious" "$dir/theirs/link"
ln -s theirs/link "$dir/mine"
for point in theirs/link theirs/link/ theirs/link/inner mine theirs/../theirs/link/new; do
    refused timeout "$deadline" "$dlockfs" --foreground "$dir/$point" 2>"$dir/err"
    grep -q "^dlockfs: error: $dir/$point: $dir/.*theirs/link is a symbolic link of another user, expected a folder, or a link of root$" "$dir/err" ||
        fail "$point: $(<"$dir/err")"
done
! immutable "$dir/precious/inner" || fail "the folder behind a link is immutable"
[ ! -e "$dir/precious/new" ] || fail "a folder was made behind a link"
rm "$dir/mine"
ln -s precious/inner "$dir/mine"
start mine "$dlockfs" --foreground "$dir/mine"
wait_until "$deadline" is_mounted "$dir/precious/inner"
grep -qx "dlockfs: warning: $dir/mine: is a symbolic link: the folder below the mount stays as it is, and without the mount, files in it are locked on this host only" \
    "$dir/mine.out" || fail "$(<"$dir/mine.out")"
flock "$dir/mine/job" true
send_signal mine TERM
finish mine
! immutable "$dir/precious/inner" || fail "the folder behind a link is immutable"
: >"$dir/mine/job"
release other
