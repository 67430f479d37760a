#!/bin/bash
# Somebody else's mount at the mountpoint is left alone, and so is one of dlockfs that lives; the start fails with one line.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

mkdir "$dir/M"
mount -t tmpfs none "$dir/M"
touch "$dir/M/precious"
for mode in --foreground ""; do
    # shellcheck disable=SC2086
    refused timeout "$deadline" "$dlockfs" $mode "$dir/M" 2>"$dir/err"
    expect_equal "lines: $(<"$dir/err")" 1 "$(wc -l <"$dir/err")"
    grep -qF "$dir/M" "$dir/err" || fail "the mountpoint is not named: $(<"$dir/err")"
    test -e "$dir/M/precious"
    expect_equal "mounts" 1 "$(grep -c " $dir/M " /proc/self/mounts)"
done

start_dlockfs A
call holder "$dir/A/job" open ex hold
expect holder "ex ok"
refused timeout "$deadline" "$dlockfs" "$dir/A" 2>"$dir/err"
expect_equal "mounts" 1 "$(grep -c " $dir/A " /proc/self/mounts)"
expect_status 1 flock -n "$dir/A/job" true

# A symbolic link is followed, so that it does not hide what is mounted behind it.
ln -s A "$dir/link"
for link in "$dir/link" "$dir/link/"; do
    refused timeout "$deadline" "$dlockfs" "$link" 2>"$dir/err"
    grep -qF "$dir/A: a mount of type fuse.dlockfs is already there" "$dir/err" || fail "$(<"$dir/err")"
done
expect_equal "mounts" 1 "$(grep -c " $dir/A " /proc/self/mounts)"

# A daemon that was stopped is not taken for a dead one, and does not stop the start for ever.
pause A
refused timeout "$deadline" "$dlockfs" "$dir/A" 2>"$dir/err"
resume A
expect_equal "mounts" 1 "$(grep -c " $dir/A " /proc/self/mounts)"
expect_status 1 flock -n "$dir/A/job" true
