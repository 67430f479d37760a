#!/bin/bash
# "meson install" installs what mounting.md says and nothing else, and never another configuration over one that is there.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

install_it() {
    DESTDIR=$dir/root meson install -C "$build" --no-rebuild >"$dir/install.log" 2>&1 || fail "$(tail -n 5 "$dir/install.log")"
}

prefix=$(meson introspect --buildoptions "$build" | jq -r '.[] | select(.name == "prefix").value')
install_it
cd "$dir/root"
expect_equal "installed" "./etc/dlockfs.ini
.$prefix/bin/dlockctl
.$prefix/include/dlockfs.h
.$prefix/lib/systemd/system/dlockfs-web.service
.$prefix/lib/systemd/system/dlockfs.service
.$prefix/lib/sysusers.d/dlockfs.conf
.$prefix/libexec/dlockfs/dlockfs-web
.$prefix/sbin/dlockfs
.$prefix/sbin/dlockfs-keeper
.$prefix/sbin/mount.fuse.dlockfs
.$prefix/share/bash-completion/completions/dlockctl
.$prefix/share/bash-completion/completions/dlockfs
.$prefix/share/dlockfs/dlockctl.schema.json
.$prefix/share/doc/dlockfs/README.md
.$prefix/share/doc/dlockfs/access.md
.$prefix/share/doc/dlockfs/coming-from.md
.$prefix/share/doc/dlockfs/containers.md
.$prefix/share/doc/dlockfs/etcd.md
.$prefix/share/doc/dlockfs/hacking.md
.$prefix/share/doc/dlockfs/how-it-works.md
.$prefix/share/doc/dlockfs/jobs.md
.$prefix/share/doc/dlockfs/kubernetes/dlockfs.yaml
.$prefix/share/doc/dlockfs/kubernetes/example.yaml
.$prefix/share/doc/dlockfs/kubernetes/keeper/dlockfs-keeper.yaml
.$prefix/share/doc/dlockfs/kubernetes/keeper/kustomization.yaml
.$prefix/share/doc/dlockfs/kubernetes/kustomization.yaml
.$prefix/share/doc/dlockfs/kubernetes/metrics/kustomization.yaml
.$prefix/share/doc/dlockfs/lease-time-line.svg
.$prefix/share/doc/dlockfs/life-of-a-lock.svg
.$prefix/share/doc/dlockfs/mounting.md
.$prefix/share/doc/dlockfs/notes.md
.$prefix/share/doc/dlockfs/other-clients.md
.$prefix/share/doc/dlockfs/page-narrow.png
.$prefix/share/doc/dlockfs/page.png
.$prefix/share/doc/dlockfs/programs.md
.$prefix/share/doc/dlockfs/prometheus/dlockfs-dashboard.json
.$prefix/share/doc/dlockfs/prometheus/dlockfs-jobs.rules.yml
.$prefix/share/doc/dlockfs/prometheus/dlockfs.rules.yml
.$prefix/share/doc/dlockfs/redis.md
.$prefix/share/doc/dlockfs/requirements.md
.$prefix/share/doc/dlockfs/restarts.md
.$prefix/share/doc/dlockfs/safety.md
.$prefix/share/doc/dlockfs/scale.md
.$prefix/share/doc/dlockfs/semantics.md
.$prefix/share/doc/dlockfs/several-hosts.md
.$prefix/share/doc/dlockfs/speed.md
.$prefix/share/doc/dlockfs/stores.md
.$prefix/share/doc/dlockfs/watching.md
.$prefix/share/fish/vendor_completions.d/dlockctl.fish
.$prefix/share/fish/vendor_completions.d/dlockfs.fish
.$prefix/share/man/man1/dlockctl.1
.$prefix/share/man/man5/dlockfs.ini.5
.$prefix/share/man/man8/dlockfs-keeper.8
.$prefix/share/man/man8/dlockfs.8
.$prefix/share/man/man8/mount.fuse.dlockfs.8
.$prefix/share/zsh/site-functions/_dlockctl
.$prefix/share/zsh/site-functions/_dlockfs" "$(find . ! -type d | LC_ALL=C sort)"
for program in ".$prefix/bin/dlockctl" ".$prefix/libexec/dlockfs/dlockfs-web" ".$prefix/sbin/mount.fuse.dlockfs"; do
    test -x "$program"
done
grep -qx "ExecStart=$prefix/sbin/dlockfs --foreground --require-url /run/dlocks" ".$prefix/lib/systemd/system/dlockfs.service"

echo '# ours' >etc/dlockfs.ini
install_it
expect_equal "the configuration" "# ours" "$(<etc/dlockfs.ini)"

# A program that tells the service manager nothing is installed without a service, which would never be ready.
meson setup -Dsystemd=disabled -Dtests=disabled "$dir/without" "$source_dir" >"$dir/setup.log" 2>&1 || fail "$(tail -n 5 "$dir/setup.log")"
meson introspect --installed "$dir/without" | jq -r '.[]' >"$dir/installed"
grep -q '/sbin/dlockfs$' "$dir/installed"
! grep -q 'dlockfs\.service$' "$dir/installed" || fail "a service without libsystemd"
