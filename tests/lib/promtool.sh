# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what tests use, what functions.sh sets
# Prometheus's promtool, which checks metrics and rules. Sourced after functions.sh.

# find_promtool: sets the variable promtool. Out of its package: to install that would start a server.
find_promtool() {
    promtool=$(command -v promtool) || promtool=$build/promtool
    [ ! -x "$promtool" ] || return 0
    (
        cd "$dir" || exit
        apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; }
        dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool
        rm prometheus_*.deb
        chmod +x promtool
        mv promtool "$promtool"
    )
}
