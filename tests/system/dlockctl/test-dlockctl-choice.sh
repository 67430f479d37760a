#!/bin/bash
# Which mount dlockctl takes: a bind mount is no second dlockfs, DLOCKFS_MOUNT and /run/dlocks are what is meant if nothing is
# said, and only what is left after that is ambiguous.

# /run is a folder of the test, in a mount namespace that ends with it.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# Those of other tests.
awk '$3 == "fuse.dlockfs" { print $2 }' /proc/self/mounts | xargs -r -n 1 umount --lazy

# taken MOUNT ARGUMENT...: the command works, on that mount.
taken() {
    local mount=$1
    shift
    "$dlockctl" "$@" --json doctor >"$dir/doctor.json" || expect_equal "status of doctor" 1 $?
    expect_equal "the mount of dlockctl $*" "$mount" "$(jq -r .mount "$dir/doctor.json")"
}
# ambiguous: with one line, that names all there are.
ambiguous() {
    expect_status 78 "$dlockctl" ls 2>"$dir/err"
    expect_equal "what dlockctl says" "dlockctl: mount: there are $# of dlockfs; choose with --mount or DLOCKFS_MOUNT: $(printf '%s\n' "$@" | paste -sd'|' | sed 's/|/ or /g')" "$(<"$dir/err")"
}
# called NAME COMMAND...: the lock that dlockctl takes is called so in its mount.
called() {
    expect_equal "the name of the lock, by ${*: -1}" "$1" "$("$dlockctl" "${@:2}" run "${path:?}" -- sh -c 'echo "$DLOCK_NAME"')"
}
requires command -v jq

# No mount: what is said names the state of the service, where systemd knows one. `none SAID WORD=VALUE...`: by what systemctl shows.
mkdir "$dir/bin"
cat >"$dir/bin/systemctl" <<'END'
#!/bin/sh
[ "$*" = "show --property=LoadState,ActiveState,Result dlockfs.service" ] && cat "$0.shows"
END
chmod +x "$dir/bin/systemctl"
none() {
    printf '%s\n' "${@:2}" >"$dir/bin/systemctl.shows"
    PATH=$dir/bin:$PATH expect_status 72 "$dlockctl" ls 2>"$dir/err"
    expect_equal "what is said of no mount" "dlockctl: mount: no dlockfs is mounted$1; mount one, or name its folder with --mount" "$(<"$dir/err")"
}
none " (dlockfs.service has failed: start-limit-hit; see: journalctl -u dlockfs)" LoadState=loaded ActiveState=failed Result=start-limit-hit
none " (dlockfs.service is inactive; to start it: systemctl start dlockfs)" Result=success LoadState=loaded ActiveState=inactive
none " (dlockfs.service is active: its mount was unmounted while programs have files of it open, or is not to be seen from here; end those, or: systemctl stop dlockfs)" \
    LoadState=loaded ActiveState=active
none "" LoadState=not-found ActiveState=inactive
none ""

# A bind mount, of all and of a directory.
start_dlockfs A
one=$dir/A
taken "$one"
mkdir "$dir/bound here" "$dir/part" "$one/cron" "$one/cron/daily"
mount --bind "$one" "$dir/bound here"
mount --bind "$one/cron" "$dir/part"
taken "$one"
expect_equal "ls" 0 "$("$dlockctl" ls --json | jq '.locks | length')"
taken "$dir/bound here" --mount "$dir/bound here"
path="$dir/bound here/cron/job" called cron/job
path=$dir/part/job called cron/job
path=$dir/part/daily/job called cron/daily/job
path=$dir/part/job called cron/job --mount "$dir/bound here"
path="$one/cron/job" called cron/job --mount "$dir/bound here"
path="$dir/bound here/x y" called "x y"
# A second mount on the same folder hides the first one.
mount --bind "$one" "$one"
taken "$dir/bound here"
taken "$one" --mount "$one"
umount "$one"

# Another file system.
start_dlockfs B
ambiguous "$one" "$dir/B"
mount --bind "$dir/B" "$dir/part"
ambiguous "$one" "$dir/B"
path=$dir/part/job called job
expect_status 64 "$dlockctl" --mount "$one" show "$dir/B/job" 2>"$dir/err"
grep -qF "$dir/B/job: is not below $one; expected the name of a lock" "$dir/err"
export DLOCKFS_MOUNT=$dir/B/
taken "$dir/B"
taken "$one" --mount "$one"
path="$dir/bound here/job" called job
path=other called other
DLOCKFS_MOUNT=$dir/nothing expect_status 72 "$dlockctl" ls 2>"$dir/err"
grep -qxF "dlockctl: DLOCKFS_MOUNT $dir/nothing: No such file or directory; expected the folder of a mount of dlockfs" "$dir/err" || fail "$(<"$dir/err")"
DLOCKFS_MOUNT=$dir expect_status 72 "$dlockctl" ls 2>"$dir/err"
grep -qxF "dlockctl: DLOCKFS_MOUNT $dir: is no mount of dlockfs; see: findmnt -t fuse.dlockfs" "$dir/err" || fail "$(<"$dir/err")"
DLOCKFS_MOUNT='' ambiguous "$one" "$dir/B"
unset DLOCKFS_MOUNT

# /run/dlocks is what the service mounts.
mkdir "$dir/run" "$dir/run/dlocks"
mount --bind "$dir/run" /run
mount --bind "$dir/B" /run/dlocks
taken /run/dlocks
stop_dlockfs A
umount "$dir/bound here"
taken /run/dlocks
umount /run/dlocks
umount /run
taken "$dir/B"
