#!/bin/bash
# A daemon that the kernel holds up: it waits uninterruptibly for a disk, is frozen by its cgroup, or its memory does not come
# back from the swap. As in test-hang.sh, every holder is told before another host can be granted its lock. Where the daemon and its
# guard are frozen together only dlockctl run ends its command in time. As root the daemon stays in memory, and loses nothing.
#
# Prints milliseconds from the fault on. Usage by hand, as root, for sessions of another length:
# DLOCKFS_BUILD=... test-hang-kernel.sh [SECONDS]

# What the user dlockfs may lock into memory is what root may raise its limit to.
prlimit --memlock=unlimited true 2>/dev/null || export DAEMON_USER=root
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"

numbers "$@"
seconds=${1:-4}
# shellcheck source=hang.sh
. "$tests/system/guard/hang.sh"

blkio=/sys/fs/cgroup/blkio
memory=/sys/fs/cgroup/memory
freezer=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
requires test "$(id -u)" = 0
requires command -v mkfs.ext4
requires test -e /dev/loop-control
requires test -w "$freezer/cgroup.procs"
requires test -w "$blkio/blkio.throttle.read_bps_device"
requires test -w "$memory/memory.force_empty"

# sleeps HOST: the thread of its daemon's loop waits uninterruptibly.
sleeps() {
    grep -q '^State:	D' "/proc/$(pid "$1")/status"
}

# told_all FAULT CUT: the holder and the command.
told_all() {
    local word
    for word in signalled polled failed; do
        told "$1" "$2" holder $word rival
    done
    told "$1" "$2" run ended rival-run
}

# group_begin FOLDER: a cgroup of this test there, for which the variable `group` is set.
group_begin() {
    group=$1/dlockfs-test-$$
    mkdir "$group"
    cleanup_fn group_end "$group"
}

# group_end GROUP: what is still in there goes on above.
group_end() {
    local process
    [ -d "$1" ] || return 0
    [ ! -e "$1/cgroup.freeze" ] || echo 0 >"$1/cgroup.freeze"
    for process in $(<"$1/cgroup.procs"); do
        echo "$process" >"${1%/*}/cgroup.procs" || true
    done
    rmdir "$1"
}

group_add() {
    local process
    for process; do
        echo "$process" >"$group/cgroup.procs"
    done
}

group_is_frozen() {
    grep -qx 'frozen 1' "$group/cgroup.events"
}

freeze_group() {
    echo 1 >"$group/cgroup.freeze"
    wait_until "$deadline" group_is_frozen
}

start_zookeeper

# A message cannot be written: SIGKILL does not end that either.
thaw() {
    fsfreeze -u "$dir/logs" 2>/dev/null || true
}
truncate -s 16M "$dir/disk"
mkfs.ext4 -q "$dir/disk"
mkdir "$dir/logs"
mount -o loop "$dir/disk" "$dir/logs"
ln -s logs/A.log "$dir/A.log"
begin
cleanup_fn thaw
fsfreeze -f "$dir/logs"
cut=$(lease now)
send_signal A HUP
wait_until "$deadline" sleeps A
told_all "waits for a disk" "$cut"
sleeps A || fail "the daemon waits no more"
thaw
finish_hosts
umount "$dir/logs"

# Frozen alone, and together with the guard.
group_begin "$freezer"
begin
group_add "$(pid A)"
cut=$(lease now)
freeze_group
told_all frozen "$cut"
finish_hosts
group_end "$group"

group_begin "$freezer"
begin
group_add "$(pid A)" "$(guards_of A)"
cut=$(lease now)
freeze_group
told "frozen with its guard" "$cut" run ended rival-run
grep -q 'run: the daemon has not answered before the lease ended: the lock is lost; the command is told to end' "$dir/run.out"
has_said holder polled && fail "the guard was not frozen"
echo 0 >"$group/cgroup.freeze"
told_late() {
    has_said holder signalled && has_said holder polled
}
wait_until "$deadline" told_late
send_signal A KILL # the guard leaves it to a daemon that goes on to fence
finish_hosts
group_end "$group"

# A swap from which a page comes each quarter of a second, and in longer sessions later: not never, because who reads the command
# line of such a process (ps(1), pgrep(1)) waits for its memory as well.
swap_end() {
    [ -z "$swap" ] || { swapoff "$swap" && losetup -d "$swap"; }
    swap=
}
fallocate -l 64M "$dir/swap"
swap=$(losetup --find --show "$dir/swap")
cleanup_fn swap_end
mkswap "$swap" >"$dir/mkswap.log"
swapon --priority 0 "$swap"
device=$(stat -c %Hr:%Lr "$swap")
group_begin "$blkio"
reading=$group/blkio.throttle.read_bps_device
group_begin "$memory"

# What dlockfs takes on A is taken back, with so much of it that it may lock; read_none then.
unlimited=$dlockfs
dlockfs=$dir/confined
confine() {
    cat >"$dlockfs" <<END
#!/bin/sh
for last; do :; done
[ "\$last" = "$dir/A" ] || exec "$unlimited" "\$@"
echo \$\$ >${reading%/*}/cgroup.procs
echo \$\$ >$group/cgroup.procs
exec $* "$unlimited" "\$@"
END
    chmod +x "$dlockfs"
}

# reclaim HOST: takes it, and says in the file `swapped` how many KiB of its daemon, and of its guard, are in the swap then.
reclaim() {
    local process processes
    processes=$(pid "$1" && guards_of "$1") # before: the command line of a process is in its memory
    echo "$device $((65536 / seconds))" >"$reading"
    echo 0 >"$group/memory.force_empty"
    for process in $processes; do
        sed -n 's/^VmSwap:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$process/status"
    done >"$dir/swapped"
}

# What is locked into memory stays there, and so do the locks.
confine
begin
reclaim A
expect_equal "KiB of the daemon and of its guard in the swap" "0 0" "$(paste -sd' ' "$dir/swapped")"
outlive_session
for word in signalled polled failed; do
    has_said holder $word && fail "the holder was told of a loss: $(<"$dir/holder.out")"
done
alive run
not_granted rival
release holder run rival rival-run
stop_dlockfs A
stop_dlockfs B
echo "$device 0" >"$reading"

# A daemon that may not lock so much of it, as that of a user. Its guard may.
confine prlimit --memlock=8388608:8388608 setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock
begin
cut=$(lease now)
for ((attempt = 0; attempt < 20; attempt++)); do # a page that is in use just then is left where it is
    reclaim A
    { read -r daemon_swapped && read -r guard_swapped; } <"$dir/swapped"
    [ "$daemon_swapped" -eq 0 ] || break
    sleep 0.05
done
# Else the kernel of this machine does not take the memory of a control group back.
requires test "$daemon_swapped" -gt 0
expect_equal "KiB of its guard in the swap" 0 "$guard_swapped"
wait_until "$deadline" sleeps A
told_all "swapped out" "$cut"
echo "$device 0" >"$reading"
finish_hosts
group_end "$group"
group_end "${reading%/*}"
swap_end
