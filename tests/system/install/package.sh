# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# The Debian package, in a machine with a systemd of its own: built in a new Debian of the release $release, without errors for
# its lintian, installed with what apt finds that it depends on, used as the documentation and the manual say, upgraded, removed.
# Sourced by a test for each release, which says how it is called.
export own_users=no # no daemon runs outside of that machine
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/machine.sh
. "$tests/lib/machine.sh"

requires command -v systemd-nspawn mmdebstrap
make_debian "$release"
build_there
start_zookeeper
start_machine

main_pid() {
    inside systemctl show --value -p MainPID dlockfs
}

# property NAME
property() {
    inside systemctl show --value -p "$1" dlockfs
}

mounted() {
    inside grep -q " $1 fuse.dlockfs " /proc/self/mounts
}

# Installed: the service runs, and is there for the next start; the mount is for everybody.
inside dpkg -i /root/dlockfs.deb >"$dir/install.out" 2>&1
state="$(inside systemctl is-active dlockfs || true) $(inside systemctl is-enabled dlockfs || true)"
[ "$state" = "active enabled" ] || fail "the service is $state: $(inside journalctl --no-pager -n 30 -u dlockfs)"
mounted /run/dlocks
inside setpriv --reuid=65534 --regid=65534 --clear-groups flock -n /run/dlocks/job true
inside dlockctl doctor >"$dir/doctor.out"
grep -q '^ok: mount: /run/dlocks answers' "$dir/doctor.out"
for unit in cron.service atd.service; do
    [[ " $(property Before) " == *" $unit "* ]] || fail "not before $unit"
done
[[ " $(property After) " == *" network-online.target "* ]]
# confined: the service's process has none of root's rights, and there is one beside it that has some.
confined() {
    local status
    status=$(inside cat "/proc/$(main_pid)/status")
    grep -qE "^Uid:(.$(inside id -u dlockfs)){4}$" <<<"$status" && grep -qE '^CapPrm:.0+$' <<<"$status" && grep -qE '^CapEff:.0+$' <<<"$status" &&
        grep -qE '^NoNewPrivs:.1$' <<<"$status" && grep -qE '^Seccomp:.2$' <<<"$status" && inside pgrep -u root -x dlockfs-warden >/dev/null
}
confined || fail "the service is not confined: $(inside cat "/proc/$(main_pid)/status")"
for page in dlockfs.8 dlockfs-keeper.8 dlockctl.1 dlockfs.ini.5 mount.fuse.dlockfs.8; do
    inside test -e "/usr/share/man/man${page##*.}/$page.gz"
done
expect_equal "what systemd has against the unit" "" "$(inside systemd-analyze verify --man=no dlockfs.service 2>&1 | grep dlockfs || true)"
inside systemd-analyze security --threshold=50 dlockfs.service >"$dir/security.out"

# The guard's place is real in the service: its limit and its filter of system calls let it run before others. A machine without
# CAP_SYS_RESOURCE gives no service what it asks for; there a capability stands for the limit.
guard_runs_first() {
    local guard
    guard=$(inside pgrep -x dlockfs-guard) && [[ $(inside chrt -p "$guard") == *SCHED_RR* ]]
}
expect_equal "what it asks for" "1 -900" "$(property LimitRTPRIO) $(property OOMScoreAdjust)"
drop_in=/run/systemd/system/dlockfs.service.d
guard_words='ok: guard: watches,realtime,spared,locked'
if ! inside prlimit --rtprio=1 true 2>/dev/null; then
    guard_words='warning: guard: not spared: .*'
    inside mkdir -p $drop_in
    printf '%s\n' '[Service]' 'CapabilityBoundingSet=CAP_SYS_NICE' | inside tee $drop_in/test.conf >/dev/null
    inside systemctl daemon-reload
    inside systemctl restart dlockfs
fi
wait_until "$deadline" guard_runs_first
[[ $(inside chrt -p "$(main_pid)") == *SCHED_OTHER* ]] || fail "the daemon runs before others, too"
inside dlockctl doctor >"$dir/doctor.out"
grep -qx "$guard_words" "$dir/doctor.out" || fail "doctor does not say $guard_words: $(<"$dir/doctor.out")"
! grep 'guard: not realtime' "$dir/doctor.out" || fail "doctor does not know it"
inside rm -rf $drop_in
inside systemctl daemon-reload
inside systemctl restart dlockfs

# The configuration: what needs a restart is named at a reload. The confinement leaves all that is needed.
printf '%s\n' '[store]' "url = ${store/127.0.0.1/localhost}" '[locks]' 'on_lost = SIGTERM' |
    inside tee /etc/dlockfs.ini >/dev/null
inside systemctl reload dlockfs
journal_has() {
    inside journalctl -q -u dlockfs -o cat "${@:2}" | finds "$1"
}
wait_until "$deadline" journal_has '\[store\] url: needs a restart to change'
expect_equal "the service" active "$(inside systemctl is-active dlockfs)"
# One with an error is refused, and the service goes on as it was.
inside cp /etc/dlockfs.ini /etc/dlockfs.good
echo '[lock]' | inside tee -a /etc/dlockfs.ini >/dev/null
refused inside systemctl reload dlockfs 2>"$dir/reload.err"
wait_until "$deadline" journal_has '/etc/dlockfs.ini:5: unknown section'
inside mv /etc/dlockfs.good /etc/dlockfs.ini
# It has lost it: the reload is refused, too.
inside mv /etc/dlockfs.ini /etc/dlockfs.good
refused inside systemctl reload dlockfs 2>"$dir/reload.err"
wait_until "$deadline" journal_has '/etc/dlockfs.ini: not there, expected url = '
inside mv /etc/dlockfs.good /etc/dlockfs.ini
# What the session hangs on has changed: the restart releases all locks.
inside systemctl restart dlockfs
wait_until "$deadline" journal_has ' does not take over: \[store\]: .*; this program releases all locks and ends'
connected() {
    inside grep -q '^session=connected' /run/dlocks/.dlockfs/status
}
wait_until "$deadline" connected
start holder nsenter -t "$(pid machine)" -a -- setpriv --reuid=65534 --regid=65534 --clear-groups \
    flock --no-fork /run/dlocks/job sh -c 'echo held; exec sleep infinity'
expect holder held
inside dlockctl break job --yes >"$dir/break.out"
expect_status 143 finish holder
wait_until "$deadline" journal_has 'sent SIGTERM to process' DLOCKFS_LOCK=job
journal_has 'sent SIGTERM to process' DLOCKFS_MOUNTPOINT=/run/dlocks PRIORITY=4

# Who holds and who waits does not notice when the daemon is restarted, killed, or replaced, when its loop hangs and the watchdog
# ends it, and when the package is upgraded.
# run_inside NAME COMMAND...: a program in the machine.
run_inside() {
    start "$1" nsenter -t "$(pid machine)" -a -- "${@:2}"
}
gone_on() {
    inside journalctl -q -u dlockfs -o cat | grep -c ' goes on with version ' || true
}
# expect_gone_on COMMAND...: the command has another program go on, and all is as it was.
expect_gone_on() {
    local before
    before=$(gone_on)
    "$@"
    wait_until "$deadline" eval "[ \"\$(gone_on)\" -gt $before ]"
    wait_until "$deadline" connected
    expect_status 1 inside flock -n /run/dlocks/held true
    expect_equal "claims" "$claims" "$(zookeeper claims /dlockfs/held | paste -sd' ')"
    alive holder
    alive waiter
    confined || fail "not confined after $*"
}
hang() {
    inside kill -STOP "$(main_pid)"
}
run_inside holder flock --no-fork /run/dlocks/held sh -c 'echo held; exec sleep infinity'
expect holder held
run_inside waiter flock --no-fork /run/dlocks/held sh -c 'echo held; exec sleep infinity'
wait_claims held 2
claims=$(zookeeper claims /dlockfs/held | paste -sd' ')
expect_equal "what systemd keeps" 2 "$(property NFileDescriptorStore)"
expect_gone_on inside systemctl restart dlockfs
# Also with an error in the configuration: that of the process before stands in.
inside cp /etc/dlockfs.ini /etc/dlockfs.good
echo '[lock]' | inside tee -a /etc/dlockfs.ini >/dev/null
expect_gone_on inside systemctl restart dlockfs
wait_until "$deadline" journal_has '/etc/dlockfs.ini:5: unknown section .*; the configuration of the process before is in use'
inside mv /etc/dlockfs.good /etc/dlockfs.ini
inside systemctl reload dlockfs
expect_gone_on inside systemctl kill --kill-who=main -s KILL dlockfs
expect_gone_on inside systemctl kill --kill-who=main -s USR1 dlockfs
expect_gone_on inside systemctl kill --kill-who=main -s USR2 dlockfs
before=$(main_pid)
expect_gone_on inside dpkg -i /root/dlockfs.deb >"$dir/upgrade.out" 2>&1
expect_equal "the daemon after an upgrade" "$before" "$(main_pid)"
inside mkdir -p $drop_in
printf '%s\n' '[Service]' 'WatchdogSec=1s' 'TimeoutAbortSec=1s' |
    inside tee $drop_in/test.conf >/dev/null
inside systemctl daemon-reload
expect_gone_on inside systemctl restart dlockfs
expect_gone_on hang
inside rm -r $drop_in
inside systemctl daemon-reload
expect_equal "what systemd keeps" 2 "$(property NFileDescriptorStore)"
release holder
expect waiter held

# A stop releases everything, and nothing is kept.
inside systemctl stop dlockfs
wait_claims held 0
! mounted /run/dlocks || fail "still mounted"
expect_equal "what systemd keeps" 0 "$(property NFileDescriptorStore)"
! inside test -e /run/dlocks || fail "there is a folder in which files could be locked"
release waiter
# Without its configuration it does not start, to lock alone.
inside mv /etc/dlockfs.ini /etc/dlockfs.good
refused inside systemctl start dlockfs 2>"$dir/start.err"
! mounted /run/dlocks || fail "mounted without a configuration"
inside mv /etc/dlockfs.good /etc/dlockfs.ini
inside systemctl reset-failed dlockfs
inside systemctl start dlockfs
expect_equal "the service" active "$(inside systemctl is-active dlockfs)"

# mount(8), with the program as its helper; a line of fstab.
inside mkdir /mnt/empty
inside mount -f -t fuse.dlockfs "$store" /mnt/empty
! mounted /mnt/empty || fail "mount -f has mounted"
inside mount -t fuse.dlockfs "$store" /mnt/empty -o idle=5s,noexec,nosuid
mounted /mnt/empty
inside grep ' /mnt/empty fuse.dlockfs' /proc/self/mounts | finds noexec
inside pgrep -f '^/sbin/mount.fuse.dlockfs .* /mnt/empty' >/dev/null
inside flock -n /mnt/empty/elsewhere sh -c '! flock -n /run/dlocks/elsewhere true'
inside umount /mnt/empty
echo "$store /run/batch fuse.dlockfs noauto,x-systemd.automount,x-mount.mkdir,_netdev,nofail 0 0" | inside tee /etc/fstab >/dev/null
inside systemctl daemon-reload
inside systemctl start run-batch.automount
! mounted /run/batch || fail "mounted before it is used"
inside flock -n /run/batch/job true
mounted /run/batch
inside systemctl stop run-batch.automount run-batch.mount

# Removed: stopped, and nothing is left but the configuration; then not even that.
inside dpkg -r dlockfs >"$dir/remove.out" 2>&1
! mounted /run/dlocks || fail "still mounted"
! inside pgrep -x dlockfs || fail "still running"
inside test -e /etc/dlockfs.ini
inside dpkg -P dlockfs >"$dir/purge.out" 2>&1
expect_equal "what is left" "" "$(inside find /etc /lib /usr /var -name '*dlockfs*' -o -name '*dlockctl*')"
