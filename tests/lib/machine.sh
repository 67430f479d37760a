# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# A machine of its own, in which systemd runs: a container of a new Debian, with the network of this machine. Sourced after
# functions.sh.

# mirror: where this machine has its own Debian from.
mirror() {
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1
}

# make_debian RELEASE: $dir/root, in memory, as dpkg waits for the disk after each file.
make_debian() {
    mkdir "$dir/root"
    mount -t tmpfs none "$dir/root"
    TMPDIR=$dir mmdebstrap --variant=minbase --skip=cleanup/apt --include=systemd-sysv,dbus,cron,procps "$1" "$dir/root" \
        "$(mirror)" >"$dir/debian.log" 2>&1
    echo 127.0.0.1 localhost >"$dir/root/etc/hosts"
}

# within COMMAND...: runs it in $dir/root, without a system.
within() {
    DEBIAN_FRONTEND=noninteractive TMPDIR=/tmp chroot "$dir/root" "$@"
}

# build_there: /root/dlockfs.deb, built and examined in $dir/root with what its Build-Depends name; nothing of that stays there but
# what the package depends on.
build_there() {
    mkdir "$dir/built" "$dir/over"
    mount -t tmpfs none "$dir/over"
    mkdir "$dir/over/changes" "$dir/over/work"
    mount -t overlay -o "lowerdir=$dir/root,upperdir=$dir/over/changes,workdir=$dir/over/work" none "$dir/root"
    mkdir -p "$dir/root/root/dlockfs" "$dir/root/root/built"
    cp -a "$source_dir"/{CHANGELOG.md,LICENSE,README.md,SECURITY.md,etc,fs,meson.build,meson_options.txt,src,tests} "$dir/root/root/dlockfs"
    {
        DEB_BUILD_OPTIONS="noopt nocheck parallel=2" within /root/dlockfs/etc/debian/build.sh --build-dep /root/built
        within apt-get -qq install -y --no-install-recommends lintian
        within sh -c 'lintian --fail-on error,warning /root/built/*.deb'
    } >"$dir/build.log" 2>&1
    cp "$dir"/root/root/built/dlockfs_*.deb "$dir/built/dlockfs.deb"
    umount "$dir/root" "$dir/over"
    cp "$dir/built/dlockfs.deb" "$dir/root/root"
    within sh -c 'apt-get -qq install -y /root/dlockfs.deb && dpkg --purge dlockfs' >"$dir/apt.log" 2>&1
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
