#!/bin/bash
# The service that is installed is what mounting.md says: systemd understands all of it, has it run before and after what it should,
# and gives it that exposure.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

systemd=/lib/systemd/systemd
page=$source_dir/etc/doc/mounting.md
generator=/lib/systemd/system-generators/systemd-fstab-generator
requires command -v systemd-analyze
requires test -x $systemd -a -x $generator
DESTDIR=$dir/root meson install -C "$build" --no-rebuild >"$dir/install.log" 2>&1 || fail "$(tail -n 5 "$dir/install.log")"
unit=$(find "$dir/root" -name dlockfs.service)
[ -n "$unit" ] || skip "built without libsystemd"
mkdir "$dir/units"

# What systemd has against it; the program is looked for where it was installed.
sed -E "s|^Exec(Start\|Reload)=(/[^ ]*/dlockfs)|Exec\1=$dir/root\2|" "$unit" >"$dir/units/dlockfs.service"
systemd-analyze verify --man=no "$dir/units/dlockfs.service" >"$dir/verify.out" 2>&1
expect_equal "what systemd says of the unit" "" "$(<"$dir/verify.out")"
exposure=$(sed -n 's/.*exposure of \([0-9.]*\) by `systemd-analyze security.*/\1/p' "$page")
systemd-analyze security --offline=true "$dir/units/dlockfs.service" >"$dir/security.out"
grep -q "exposure level for dlockfs.service: $exposure " "$dir/security.out" ||
    fail "mounting.md says $exposure, systemd: $(tail -n 1 "$dir/security.out")"

# The page's service has no rights at all, and systemd finds little that it could do.
web=$(find "$dir/root" -name dlockfs-web.service)
if [ -n "$web" ]; then
    sed -E "s|^ExecStart=(/[^ ]*)|ExecStart=$dir/root\1|" "$web" >"$dir/units/dlockfs-web.service"
    systemd-analyze verify --man=no "$dir/units/dlockfs-web.service" >"$dir/verify.out" 2>&1
    expect_equal "what systemd says of the unit of the page" "" "$(<"$dir/verify.out")"
    systemd-analyze security --offline=true --threshold=20 "$dir/units/dlockfs-web.service" >"$dir/security.out" || fail "$(tail -n 1 "$dir/security.out")"
    grep -q -- '--listen ${LISTEN}' "$web"
    grep -qx 'Environment=LISTEN=127.0.0.1:8470' "$web" || fail "it does not listen to this host alone"
fi

# What a systemd that starts nothing makes of it, beside the line of mounting.md for fstab and others. It does not do that as root.
for other in cron atd; do
    printf '%s\n' '[Service]' 'ExecStart=/bin/true' >"$dir/units/$other.service"
done
printf '%s\n' '[Unit]' 'Wants=dlockfs.service cron.service atd.service run-dlocks.mount' >"$dir/units/all.target"
grep '^zookeeper://.* fuse\.dlockfs ' "$page" >"$dir/fstab"
mkdir "$dir/generated"
SYSTEMD_FSTAB=$dir/fstab $generator "$dir/generated" "$dir/generated" "$dir/generated"
SYSTEMD_UNIT_PATH=$dir/units:$dir/generated: timeout "$deadline" setpriv --reuid=65534 --regid=65534 --clear-groups \
    $systemd --test --system --unit=all.target >"$dir/systemd.out" 2>"$dir/systemd.err" || fail "$(tail -n 3 "$dir/systemd.err")"

# understood UNIT LINE...: systemd has understood it so.
understood() {
    local unit=$1 line
    shift
    for line; do
        awk -v "unit=$unit" -v "line=$line" '
            /-> Unit / { here = $3 == unit ":" }
            { sub(/^[[:space:]]+/, ""); sub(/ \(.*/, "") }
            here && $0 == line { found = 1 }
            END { exit !found }' "$dir/systemd.out" || fail "$unit: not understood: $line"
    done
}
understood dlockfs.service "Before: cron.service" "Before: atd.service" "After: network-online.target" \
    "Wants: network-online.target" "Type: notify" "WatchdogSec: 20s" "Restart: on-failure" "RestartKillSignal: SIGUSR1" \
    "KillMode: process" "OOMPolicy: continue" "File Descriptor Store Max: 3" "Environment: FDSTORE=2"
# A mount namespace of its own would hide the mount from everybody.
understood dlockfs.service "PrivateTmp: no" "PrivateDevices: no" "ProtectSystem: no" "ProtectHome: no" "ProtectControlGroups: no" \
    "ProtectKernelTunables: no" "ProtectKernelModules: no" "ProtectKernelLogs: no" "ProtectProc: default"
understood run-dlocks.mount "Before: remote-fs.target" "After: network-online.target" "File System Type: fuse.dlockfs"
grep -q 'when its loop hangs: for 20 seconds' "$page"
grep -qx 'WatchdogSignal=SIGKILL' "$unit" || fail "a daemon that is stopped is not ended by another signal"
# It does not lock alone for want of a configuration, which is there as installed.
grep -q '^ExecStart=.* --require-url ' "$unit" || fail "the service needs no url"
grep -qx 'url = local:' "$dir/root/etc/dlockfs.ini" || fail "the configuration has no url"
# A reload first looks for errors in the very configuration that the service has.
start=$(sed -n 's/^ExecStart=//p' "$dir/units/dlockfs.service")
check=$(sed -n 's/^ExecReload=//p' "$dir/units/dlockfs.service" | head -n 1)
expect_equal "what a reload does first" "${start/ --foreground / --check }" "$check"
expect_equal "what a reload does then" "/bin/kill -HUP \$MAINPID" "$(sed -n 's/^ExecReload=//p' "$unit" | tail -n +2)"
for key in RestartForceExitStatus SuccessExitStatus; do # which systemd does not tell
    grep -qx "$key=$("$python" -c 'import os; print(os.EX_TEMPFAIL)')" "$unit" || fail "$key is not what fs/main.c ends with"
done
