#!/bin/bash
# The units in jobs.md, as they stand there, on a systemd of their own: with the service that is installed, and the store local.
export own_users=no # no daemon runs outside of that machine
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/machine.sh
. "$tests/lib/machine.sh"

page=$source_dir/etc/doc/jobs.md
requires command -v systemd-nspawn mmdebstrap
# The programs are those of this machine, so the machine in it is of its release.
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
make_debian "$release"
DESTDIR=$dir/root meson install -C "$build" --no-rebuild >"$dir/install.log" 2>&1 || fail "$(tail -n 5 "$dir/install.log")"
mapfile -t libraries < <(ldd "$dlockfs" "$dlockctl" | awk '$3 ~ /^\// { print $3 }' | sort -u)
mapfile -t packages < <(for library in "${libraries[@]}"; do
    dpkg -S "$library" 2>/dev/null || dpkg -S "$(readlink -f "$library")"
done | sed 's/:.*//' | sort -u)
within apt-get -qq install -y --no-install-recommends fuse3 "${packages[@]}" >"$dir/apt.log" 2>&1 || fail "$(tail -n 3 "$dir/apt.log")"
unit=$(find "$dir/root" -path '*/systemd/system/dlockfs.service')
[ -n "$unit" ] || skip "built without libsystemd"
within systemd-sysusers >"$dir/sysusers.out" 2>&1
# Where the unit, and the examples, look for the programs.
for program in sbin/dlockfs bin/dlockctl; do
    [ -e "$dir/root/usr/$program" ] || ln -s "/usr/local/$program" "$dir/root/usr/$program"
done
[[ $unit = */usr/local/* ]] && cp "$unit" "$dir/root/etc/systemd/system"

# Each example whose first line names a file.
mkdir "$dir/root/etc/systemd/system/timer.d"
awk -v "root=$dir/root" '
    /^```/ { inside = $0 == "```systemd"; file = ""; next }
    inside && file == "" && /^# \// { file = root $2; print $2; next }
    inside && file != "" { print >file }' "$page" >"$dir/files"
expect_equal "units in $page" "cleanup.service dlockfs.conf index.service report.service report.timer scheduler.service upgrade.service worker.service" \
    "$(sed 's|.*/||' "$dir/files" | sort | paste -sd' ')"
for name in report cleanup index upgrade; do
    printf '#!/bin/sh\necho x >>/root/%s.ran\n' "$name" >"$dir/root/usr/local/bin/$name"
done
printf '#!/bin/sh\necho $$ >>/root/scheduler.ran\nexec sleep infinity\n' >"$dir/root/usr/local/bin/scheduler"
printf '#!/bin/sh\necho $DLOCK_SLOT >>/root/worker.ran\nexec sleep infinity\n' >"$dir/root/usr/local/bin/worker"
chmod +x "$dir/root/usr/local/bin/"{report,cleanup,index,upgrade,scheduler,worker}
# The sections for the configuration.
awk '/^```/ { inside = $0 == "```ini"; next } inside' "$page" >>"$dir/root/etc/dlockfs.ini"
rm -f "$dir/root/usr/sbin/policy-rc.d"
start_machine

ran() {
    inside sh -c "cat /root/$1.ran 2>/dev/null | wc -l"
}

ran_at_least() {
    [ "$(ran "$1")" -ge "$2" ]
}

result() {
    inside systemctl show --value -p Result "$1"
}

mapfile -t units < <(sed "s,.*/,," "$dir/files" | grep -v '\.conf$')
expect_equal "what systemd has against them" "" \
    "$(inside systemd-analyze verify --man=no "${units[@]}" 2>&1 | grep -E "report|cleanup|index|scheduler|upgrade|worker" || true)"

# A timer that is due before the mount is there.
expect_equal "dlockfs before" inactive "$(inside systemctl is-active dlockfs || true)"
inside systemctl start report.timer
wait_until "$deadline" ran_at_least report 1
expect_equal "dlockfs then" active "$(inside systemctl is-active dlockfs)"
inside systemctl start report.service
expect_equal "runs in a period" 1 "$(ran report)"
expect_equal "a skipped run" success "$(result report.service)"

# A timer of a job that knows nothing of dlockfs, due at once, waits for the mount if both are to start. That delays all timers, but
# makes no cycle.
inside systemctl stop dlockfs
printf '%s\n' '[Service]' 'Type=oneshot' 'ExecStart=flock -n /run/dlocks/simple sh -c "echo x >>/root/simple.ran"' |
    inside tee /run/systemd/system/simple.service >/dev/null
printf '%s\n' '[Timer]' 'OnActiveSec=0' | inside tee /run/systemd/system/simple.timer >/dev/null
inside systemctl daemon-reload
inside systemctl start dlockfs.service simple.timer
wait_until "$deadline" ran_at_least simple 1
! inside systemctl is-failed --quiet simple.service || fail "the job began before the mount"
inside systemd-analyze verify --man=no timers.target multi-user.target >"$dir/order" 2>&1 || true
! grep -i cycle "$dir/order" || fail "units wait for one another"

# In a sandbox; without the line it does not work.
inside systemctl start cleanup.service
expect_equal "runs in a sandbox" 1 "$(ran cleanup)"
sed '/ReadWritePaths/d; s/" cleanup --/" bare --/' "$dir/root/etc/systemd/system/cleanup.service" >"$dir/root/etc/systemd/system/bare.service"
inside systemctl daemon-reload
refused inside systemctl start bare.service 2>"$dir/err"
inside journalctl --no-pager -u bare.service >"$dir/journal"
grep -q 'Read-only file system' "$dir/journal" || fail "$(<"$dir/journal")"

# Only if nobody deploys.
inside systemd-run --quiet --unit=deploy flock /run/dlocks/deploy sleep infinity
wait_until "$deadline" refused inside flock -n /run/dlocks/deploy true
inside systemctl start index.service
expect_equal "while somebody deploys" 0 "$(ran index)"
inside systemctl stop deploy.service
inside systemctl start index.service
expect_equal "afterwards" 1 "$(ran index)"

# One of all hosts: begins anew when the lock is lost, and ends with the service.
inside systemctl start scheduler.service
wait_until "$deadline" ran_at_least scheduler 1
inside dlockctl break --yes scheduler
wait_until "$deadline" ran_at_least scheduler 2
inside systemctl stop scheduler.service
expect_equal "the lock then" free "$(inside flock -n /run/dlocks/scheduler echo free)"
refused inside pgrep -f 'sleep infinity'

# At most N: who comes next has the next number.
inside systemctl start worker.service
wait_until "$deadline" ran_at_least worker 1
expect_equal "slots" "0 1" "$(inside sh -c 'cat /root/worker.ran; dlockctl run -n workers printenv DLOCK_SLOT' | paste -sd' ')"
inside systemctl stop worker.service

# Two have been upgraded, as far as the locks go: the third one waits, until the time of one of them ends.
inside systemctl start upgrade.service
inside systemctl start upgrade.service
expect_equal "slots that rest" 2 "$(inside dlockctl show reboots | grep -c resting)"
inside systemctl start --no-block upgrade.service
wait_until "$deadline" inside sh -c 'dlockctl show reboots | grep -q waiting'
expect_equal "upgrades" 2 "$(ran upgrade)"
inside dlockctl break --yes reboots
wait_until "$deadline" ran_at_least upgrade 3
