# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Installs what bench/run.sh compares with. Sourced after functions.sh.

# shellcheck source=../packages.sh
. "$tests/packages.sh"

packages=(libcurator-recipes-java libzookeeper-java openjdk-17-jdk-headless zookeeper python3-kazoo python3-redis
    etcd-server etcd-client redis-server libhiredis-dev glusterfs-server iproute2 gnuplot-nox procps util-linux)

# Packages that cannot be had are no error: who needs them is missing in the tables.
install_packages() {
    local missing package
    [ -z "${CONTENDERS:-}" ] || return 0
    packages_find_missing "goes on without packages that only root can install" "${packages[@]}" || return 0
    [ ${#missing[@]} -gt 0 ] || return 0
    apt-get -qq update || true
    for package in "${missing[@]}"; do
        packages_install "$package" >>"$dir/apt.log" 2>&1 ||
            echo "cannot be installed: $package" >&2
    done
    rm -f "$dir/apt.log"
}
