# shellcheck shell=bash
# Sourced by run.sh and bench/packages.sh.

# packages_missing PACKAGE...: those that are not installed, one a line.
packages_missing() {
    local package
    for package; do
        [ "$(dpkg-query -Wf '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}
