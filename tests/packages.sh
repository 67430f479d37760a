# shellcheck shell=bash
# Sourced by run.sh and bench/packages.sh.

# packages_missing PACKAGE...: those that are not installed, one a line.
packages_missing() {
    local package
    for package; do
        [ "$(dpkg-query -Wf '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# packages_find_missing WHAT-ELSE PACKAGE...: sets `missing` to those that are not installed. Fails if somebody else has to
# install them, after saying WHAT-ELSE happens now.
packages_find_missing() {
    local otherwise=$1
    shift
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "$otherwise: apt-get install ${missing[*]}" >&2
        return 1
    fi
    echo "installing: ${missing[*]}"
}

# packages_install PACKAGE...: none of their servers is started as a service of the machine.
packages_install() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
)
