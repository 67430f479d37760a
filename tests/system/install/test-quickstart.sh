#!/bin/bash
# The quick start shows a lock handed over, on the embedded store, on ZooKeeper, etcd and Redis; a second run finds what is up; --stop leaves nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

export DLOCKFS_QUICKSTART_RUN=$dir/run DLOCKFS_QUICKSTART_BUILD=$build
quickstart=$source_dir/etc/quickstart.sh
mkdir "$dir/run"
# It installs what the documents say, but for what a service takes, and the page.
mapfile -t packages < <(sed -n '/^apt-get install meson/,/^meson/p' "$source_dir/etc/doc/mounting.md" | sed 's/#.*//' |
    grep -oE '[a-z0-9-]+-(dev|build|compiler)' | grep -vxE "lib(systemd|microhttpd)-dev")
[ ${#packages[@]} -ge 10 ] || fail "only ${packages[*]}"
for package in "${packages[@]}"; do
    grep -q "install_packages.* $package\b\|^ .* $package\b" "$quickstart" || fail "does not install $package"
done
cleanup_fn timeout 60 "$quickstart" --stop

timeout 120 "$quickstart" >"$dir/first.out" 2>&1
is_mounted "$dir/run/dlocks"
grep -q 'waited' "$dir/first.out" || fail "no lock waited for: $(<"$dir/first.out")"
timeout 120 "$quickstart" >"$dir/second.out" 2>&1
grep -q 'already' "$dir/second.out" || fail "does not say what is up: $(<"$dir/second.out")"
expect_equal "mounts" "$dir/run/dlocks" "$(mounts_below "$dir")"

timeout 120 "$quickstart" --zookeeper >"$dir/third.out" 2>&1
for mount in dlocks-a dlocks-b; do
    is_mounted "$dir/run/$mount"
done
hold holder "$dir/run/dlocks-a/job"
expect holder held
expect_status 1 flock -n "$dir/run/dlocks-b/job" true
release holder
timeout 120 "$quickstart" --zookeeper >"$dir/fourth.out" 2>&1
grep -q 'already' "$dir/fourth.out" || fail "does not say what is up: $(<"$dir/fourth.out")"

# shares STORE ONE OTHER: on mounts of that store. Where the build lacks it there is one line that says so, and --stop ends what was
# started.
shares() {
    local mount
    if ! "$dlockfs" --check --store "$1://localhost" "$dir" 2>/dev/null; then
        expect_status 1 timeout 120 "$quickstart" "--$1" >"$dir/$1.out" 2>&1
        grep -qi "dlocks-$2 did not come up: .*built without $1" "$dir/$1.out" || fail "$(<"$dir/$1.out")"
        return
    fi
    timeout 120 "$quickstart" "--$1" >"$dir/$1.out" 2>&1
    for mount in "dlocks-$2" "dlocks-$3"; do
        is_mounted "$dir/run/$mount"
    done
    grep -q 'waited' "$dir/$1.out" || fail "no lock waited for: $(<"$dir/$1.out")"
    timeout 120 "$quickstart" "--$1" >"$dir/$1-again.out" 2>&1
    grep -q 'already' "$dir/$1-again.out" || fail "does not say what is up: $(<"$dir/$1-again.out")"
}
shares etcd c d
shares redis e f
for name in etcd redis; do
    server=$(cut -d' ' -f1 "$dir/run/dlockfs-quickstart/$name.pid")
    test -e "/proc/$server"
    servers+=("$server")
done

timeout 60 "$quickstart" --stop >"$dir/stop.out" 2>&1
for server in "${servers[@]}"; do
    [[ $(ps -o stat= -p "$server" || true) =~ ^(Z.*)?$ ]] || fail "a server still runs: $server"
done
expect_equal "mounts" "" "$(mounts_below "$dir")"
expect_equal "folders" "" "$(ls -A "$dir/run")"
timeout 60 "$quickstart" --stop >"$dir/stop.out" 2>&1

# A mount of somebody else in its place is left alone, and said.
mkdir "$dir/run/dlocks"
mount -t tmpfs none "$dir/run/dlocks"
refused timeout 120 "$quickstart" >"$dir/taken.out" 2>&1
grep -qF "$dir/run/dlocks" "$dir/taken.out"
grep -q " $dir/run/dlocks tmpfs" /proc/self/mounts
expect_status 2 "$quickstart" --nonsense 2>"$dir/usage.out"
