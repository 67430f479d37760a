# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what functions.sh reads, and sets
# Hosts behind a link that can be dead: its packets are dropped, in both directions, and nobody is told. Sourced after functions.sh by
# a test that has run itself anew in a network namespace of its own, in which its servers are; the daemons are in a second one, and the
# link is a third one that forwards between the two.

link_servers=10.77.1.1 # their address, as the daemons see it

in_namespace() {
    nsenter --net="/proc/$(pid "$1")/ns/net" "${@:2}"
}

has_namespace() {
    [ "$(readlink "/proc/$(pid "$1")/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# start_link: from then on daemons that are started are on the other side of it.
start_link() {
    local name
    requires command -v ip
    for name in link far; do
        start "$name" unshare --net sleep infinity
        wait_until "$deadline" has_namespace "$name"
    done
    ip link set lo up
    requires ip link add near0 type veth peer name link0 netns "$(pid link)"
    ip address add "$link_servers/24" dev near0
    ip link set near0 up
    in_namespace link ip link add link1 type veth peer name far0 netns "$(pid far)"
    in_namespace link ip address add 10.77.1.2/24 dev link0
    in_namespace link ip address add 10.77.2.2/24 dev link1
    in_namespace link ip link set link0 up
    in_namespace link ip link set link1 up
    in_namespace link sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    in_namespace far ip address add 10.77.2.1/24 dev far0
    in_namespace far ip link set lo up
    in_namespace far ip link set far0 up
    in_namespace far ip route add default via 10.77.2.2
    ip route replace 10.77.2.0/24 via 10.77.1.2
    mkfifo "$dir/link-commands"
    exec {link_commands}<>"$dir/link-commands"
    start link-commands nsenter --net="/proc/$(pid link)/ns/net" ip -batch "$dir/link-commands"
    printf '#!/bin/sh\nexec nsenter --net=/proc/%s/ns/net %q "$@"\n' "$(pid far)" "$dlockfs" >"$dir/dlockfs-far"
    chmod +x "$dir/dlockfs-far"
    dlockfs=$dir/dlockfs-far
}

# What the link forwards is looked up behind its own addresses, and here ends. By a program that is there already: a busy machine takes
# a tenth of a second to start one.
kill_link() {
    echo "rule add pref 1 blackhole" >&"$link_commands"
}

heal_link() {
    echo "rule del pref 1" >&"$link_commands"
}

# pause_ms MILLISECONDS
pause_ms() {
    local seconds
    printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
    read -r -t "$seconds" -u "$nothing" || true
}

# start_far_zookeeper NUMBER, start_far_etcd NUMBER: so many servers, for both sides. Sets store as the daemons see it.
start_far_zookeeper() {
    zookeeper_configuration+=$'\nclientPortAddress=0.0.0.0'
    start_ensemble "$1"
    zookeeper_name=zk1
    store=${store//127.0.0.1/$link_servers}
}

start_far_etcd() {
    local number names=() options=("${etcd_options[@]}")
    for ((number = 1; number <= $1; number++)); do
        names+=("etcd$number")
        etcd_configure "etcd$number"
    done
    requires type -P etcdctl
    requires type -P etcd
    etcd_join "${names[@]}"
    for number in "${names[@]}"; do
        etcd_options=("${options[@]}" --listen-client-urls "http://0.0.0.0:$(<"$dir/$number/port")")
        etcd_launch "$number"
    done
    etcd_options=("${options[@]}")
    for number in "${names[@]}"; do
        wait_until "$deadline" etcd_serves "$number"
    done
    store=${store//127.0.0.1/$link_servers}
}
