# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# A machine of its own, in which systemd runs: a container whose root is this machine's as it is, and whatever is written there
# is gone with the test. It has the network of this machine. Sourced after functions.sh.

# make_package: builds the Debian package, in the variable package. lintian may find no error in it.
make_package() {
    requires command -v dpkg-buildpackage dh lintian
    mkdir "$dir/package"
    DEB_BUILD_OPTIONS="noopt nocheck parallel=2" "$source_dir/etc/debian/build.sh" "$dir/package" >"$dir/build.out" 2>&1
    package=$(echo "$dir"/package/dlockfs_*.deb)
    TMPDIR=$dir lintian --fail-on error "$package" # it leaves files there
}

# make_root: $dir/root. With CLEAN_ROOT=1 a new Debian by debootstrap, which takes half a minute and Debian's mirror.
make_root() {
    mkdir "$dir/root" "$dir/over"
    mount -t tmpfs none "$dir/over" # dpkg waits for the disk after each file
    if [ -n "${CLEAN_ROOT:-}" ]; then
        requires command -v debootstrap
        mount --bind "$dir/over" "$dir/root"
        debootstrap --variant=minbase --include=systemd-sysv,dbus,cron,procps bookworm "$dir/root" \
            "$(apt-get indextargets --format '$(SITE)' 'Suite: bookworm' | head -n 1)" >"$dir/debootstrap.log" 2>&1
        rm "$dir/root/etc/apt/sources.list"
        cp -a /etc/apt/. "$dir/root/etc/apt"
        echo 127.0.0.1 localhost >"$dir/root/etc/hosts"
        return
    fi
    mkdir "$dir/over/changes" "$dir/over/work"
    mount -t overlay -o "lowerdir=/,upperdir=$dir/over/changes,workdir=$dir/over/work" none "$dir/root"
    # Nothing that this machine starts by itself, or forbids packages to start.
    rm -rf "$dir/root/etc/fstab" "$dir"/root/etc/systemd/system/*.wants "$dir/root/usr/sbin/policy-rc.d" \
        "$dir/root/etc/dlockfs.ini"
}

# inside COMMAND...: runs it in the machine.
inside() {
    timeout 120 nsenter -t "$(pid machine)" -a -- "$@"
}

machine_up() {
    gone nspawn || [[ $(inside systemctl is-system-running) =~ ^(running|degraded)$ ]]
}

machine_init() {
    init=$(pgrep -P "$(pid nspawn)") && [ "$(ps -o comm= -p "$init")" = systemd ]
}

# start_machine: boots $dir/root.
start_machine() {
    local init=
    cleanup_fn end_machine
    start nspawn systemd-nspawn --quiet --register=no --keep-unit --link-journal=no --machine="dlockfs-test-$$" \
        --directory="$dir/root" --bind=/dev/fuse --bind=/dev/autofs --boot systemd.unit=basic.target
    wait_until "$deadline" machine_init
    process_record "$dir" machine "$init"
    wait_until "$deadline" machine_up
    alive nspawn
}

# end_machine: with all that runs in it, and the control groups that were made for it.
end_machine() {
    local folder init
    # Also one that has only just begun, and which nspawn does not take along.
    init=$(pgrep -P "$(pid nspawn)") && kill -KILL "$init"
    release nspawn
    while IFS=: read -r _ _ folder; do
        find /sys/fs/cgroup{,/*}"$folder"/{payload,supervisor} -depth -type d -exec rmdir {} + 2>/dev/null
    done </proc/self/cgroup
    return 0
}
