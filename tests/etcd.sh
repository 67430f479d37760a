# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what tests use, what functions.sh sets
# etcd's servers and its client etcdctl, for tests. Sourced by functions.sh.
#
# The data of the member NAME are in $dir/NAME, its messages in $dir/NAME.log. It is paused and resumed as any program that a test
# started (pause, resume), and a link to its clients' port is cut as one to ZooKeeper: start_proxy LINK NAME, cut_link, join_link.
#
# etcdctl finds the servers by its environment: `start NAME etcdctl lock LOCK -- COMMAND ...` needs no options.
#
# From the environment: DLOCKFS_ETCD_BIN, the folder with the programs etcd and etcdctl, instead of those of this machine.

[ -z "${DLOCKFS_ETCD_BIN:-}" ] || PATH=$DLOCKFS_ETCD_BIN:$PATH
unset "${!ETCD@}"
export ETCDCTL_API=3

etcd_options=()  # additional options of the servers
etcd_members=()  # the names of those of the cluster that was started last
etcd_durable=no  # yes: also what is on the disk of a test survives a loss of power, as where etcd keeps locks
etcd_scheme=http # of the clients' port; for https also --cert-file and --key-file in etcd_options, and ETCDCTL_CACERT

# etcd COMMAND ARGUMENT...: etcdctl, with the servers that were started last. Waits for them as long as a test may.
etcd() {
    timeout $((deadline + 30)) etcdctl --dial-timeout="${deadline}s" --command-timeout="${deadline}s" "$@"
}

# etcd_ask NAME COMMAND ARGUMENT...: the same with one member, which has to answer soon.
etcd_ask() {
    ETCDCTL_ENDPOINTS=$etcd_scheme://$(etcd_address "$1") timeout 5 etcdctl --command-timeout=3s "${@:2}"
}

etcd_address() {
    echo "127.0.0.1:$(port_of "${1:-etcd}")"
}

# etcd_certificate NAME CA-NAME: $dir/NAME.pem and $dir/NAME.key, for this address, signed by the CA; which signs itself.
etcd_certificate() {
    local signer=()
    [ "$1" = "$2" ] || signer=(-CA "$dir/$2.pem" -CAkey "$dir/$2.key")
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -addext subjectAltName=IP:127.0.0.1 "${signer[@]}" -keyout "$dir/$1.key" -out "$dir/$1.pem" 2>>"$dir/openssl.err" ||
        fail "openssl: $(tail -n 1 "$dir/openssl.err")"
}

# etcd_add_users: root, with the password r00t, and host, with s3cret, who may do all below /dlockfs/ by the role hosts. They count from
# `etcd auth enable` on.
etcd_add_users() {
    etcd user add root:r00t
    etcd user grant-role root root
    etcd_add_role hosts /dlockfs/
    etcd user add host:s3cret
    etcd user grant-role host hosts
} >/dev/null

# etcd_add_role NAME PREFIX: who has it may do all with the keys that begin so.
etcd_add_role() {
    etcd role add "$1"
    etcd role grant-permission "$1" --prefix=true readwrite "$2"
} >/dev/null

# etcd_serves NAME: the member answers, and a majority with it. ("endpoint health" of 3.5 fails for an alarm as well.)
etcd_serves() {
    etcd_ask "$1" get health >/dev/null 2>&1
}

# etcd_settled NAME: the member serves, or it has ended (its port was taken in the meantime).
etcd_settled() {
    gone "$1" || etcd_serves "$1"
}

# etcd_configure NAME: with ports of its own.
etcd_configure() {
    mkdir -p "$dir/$1"
    free_port >"$dir/$1/port"
    free_port >"$dir/$1/peer-port"
}

# etcd_peer NAME: how the other members reach it.
etcd_peer() {
    echo "http://127.0.0.1:$(<"$dir/$1/peer-port")"
}

# etcd_join NAME...: writes down that these configured members are one cluster, with which the test goes on.
etcd_join() {
    local name members="" servers=""
    etcd_members=("$@")
    ETCDCTL_ENDPOINTS=
    for name; do
        members+=${members:+,}$name=$(etcd_peer "$name")
        servers+=${servers:+,}$(etcd_address "$name")
        ETCDCTL_ENDPOINTS+=${ETCDCTL_ENDPOINTS:+,}$etcd_scheme://$(etcd_address "$name")
    done
    export ETCDCTL_ENDPOINTS
    for name; do
        echo "$members" >"$dir/$name/members"
    done
    store=etcd://$servers/dlockfs
}

# etcd_launch NAME: starts a member, the second time with the same data and ports; without waiting for it.
etcd_launch() {
    local client_url peer_url listen_url options=()
    client_url=$etcd_scheme://$(etcd_address "$1")
    peer_url=$(etcd_peer "$1")
    listen_url=$peer_url
    [ ! -e "$dir/$1/behind-link" ] || listen_url=http://127.0.0.1:$(<"$dir/$1/behind-link")
    # From 3.5 on.
    [ "$etcd_durable" = yes ] || ! command etcd --help 2>&1 | finds -e --unsafe-no-fsync || options+=(--unsafe-no-fsync)
    setsid "${servers_under[@]}" etcd --name "$1" --data-dir "$dir/$1/data" --initial-cluster "$(<"$dir/$1/members")" --initial-cluster-token "$dir" \
        --listen-client-urls "$client_url" --advertise-client-urls "$client_url" \
        --listen-peer-urls "$listen_url" --initial-advertise-peer-urls "$peer_url" \
        --logger zap --log-level error "${options[@]}" "${etcd_options[@]}" >>"$dir/$1.log" 2>&1 </dev/null &
    process_record "$dir" "$1" $!
}

# start_etcd [NAME]: a cluster of one member; the second time with the same data and ports. Sets the variable store to a URL on it.
start_etcd() {
    local name=${1:-etcd} attempt
    requires type -P etcdctl
    requires type -P etcd
    for attempt in 1 2 3 4 5; do
        if [ "$attempt" -gt 1 ] || [ ! -e "$dir/$name/port" ]; then
            rm -rf "$dir/$name/data"
            etcd_configure "$name"
        fi
        etcd_join "$name"
        etcd_launch "$name"
        wait_until "$deadline" etcd_settled "$name"
        ! alive "$name" || return 0
        [ ! -e "$dir/$name/started" ] || break
    done
    fail "etcd does not start: $(tail -n 3 "$dir/$name.log")"
}

# start_etcds N: members etcd1 to etcdN, one cluster. Sets the variable store to a URL of all of them.
start_etcds() {
    local number
    for ((number = 1; number <= $1; number++)); do
        etcd_configure "etcd$number"
    done
    start_configured_etcds "$1"
}

start_configured_etcds() {
    local number names=()
    requires type -P etcdctl
    requires type -P etcd
    for ((number = 1; number <= $1; number++)); do
        names+=("etcd$number")
    done
    etcd_join "${names[@]}"
    for number in "${names[@]}"; do
        etcd_launch "$number"
    done
    for number in "${names[@]}"; do
        wait_until "$deadline" etcd_serves "$number"
    done
}

# start_linked_etcds N: the same; cut_link etcd1 and join_link etcd1 act on all that the member hears of the others, and they of it.
start_linked_etcds() {
    local number links=()
    for ((number = 1; number <= $1; number++)); do
        etcd_configure "etcd$number"
        free_port >"$dir/etcd$number/behind-link"
        links+=("$(<"$dir/etcd$number/peer-port"):$(<"$dir/etcd$number/behind-link"):etcd$number")
    done
    start links "$python" "$tests/lib/etcd_links.py" "$dir" "${links[@]}"
    wait_until "$deadline" test -e "$dir/links-ready"
    start_configured_etcds "$1"
}

# stop_etcd [NAME]: a clean stop, before which a leader hands over. The data stay.
stop_etcd() {
    end_etcd "${1:-etcd}" TERM
}

# kill_etcd [NAME]: it dies without a chance to do anything. The data stay.
kill_etcd() {
    end_etcd "${1:-etcd}" KILL
}

end_etcd() {
    touch "$dir/$1/started" # from now on it keeps its ports
    send_signal "$1" "$2"
    finish "$1" 2>/dev/null || true
}

# rejoin_etcd NAME: a member that was ended goes on, and a majority with it. When that needs several: etcd_launch each, then wait.
rejoin_etcd() {
    etcd_launch "$1"
    wait_until "$deadline" etcd_serves "$1"
}

# restart_etcd [NAME]: killed, and started again.
restart_etcd() {
    kill_etcd "${1:-etcd}"
    rejoin_etcd "${1:-etcd}"
}

# etcd_status NAME: what the member says of itself: "ENDPOINT, ID, VERSION, SIZE, IS-LEADER, ...".
etcd_status() {
    alive "$1" && etcd_ask "$1" endpoint status 2>/dev/null
}

# etcd_leader: the name of the member that leads. All who answer have to agree: a former leader may not know yet.
etcd_leader() {
    wait_until "$deadline" etcd_find_leader
}

etcd_find_leader() {
    local name words found=()
    for name in "${etcd_members[@]}"; do
        IFS=', ' read -r -a words < <(etcd_status "$name" || true) || continue
        [[ " ${words[*]:3} " != *" true "* ]] || found+=("$name")
    done
    [ ${#found[@]} -eq 1 ] && etcd_serves "${found[0]}" && echo "${found[0]}"
}

# etcd_move_leader NAME: the member leads from now on.
etcd_move_leader() {
    local leader words
    leader=$(etcd_leader)
    [ "$leader" != "$1" ] || return 0
    IFS=', ' read -r -a words < <(etcd_status "$1")
    etcd_ask "$leader" move-leader "${words[1]}" >/dev/null
    wait_until "$deadline" etcd_leads "$1"
}

etcd_leads() {
    [ "$(etcd_find_leader)" = "$1" ]
}

# etcd_claims LOCK: the keys of the claims in its queue, in their order. Not its claims' data, nor what belongs to locks below it.
etcd_claims() {
    etcd get --prefix --sort-by=CREATE --keys-only "/dlockfs/$1/" |
        sed -nE "s,^(/dlockfs/$1/((read|write)/)?[^/]+)$,\1,p"
}

# etcd_wait_claims LOCK NUMBER: until so many claims stand in the queue of a lock.
etcd_wait_claims() {
    wait_until "$deadline" etcd_has_claims "$1" "$2"
}

etcd_has_claims() {
    [ "$(etcd_claims "$1" | wc -l)" -eq "$2" ]
}

# etcd_metrics NAME METRIC...: of the member at one moment, for each the sum over all that begin with this, such as
# 'grpc_server_msg_received_total{', separated by blanks.
etcd_metrics() {
    # shellcheck disable=SC2016
    timeout "$deadline" "$python" -c '
import sys, urllib.request
lines = urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode().splitlines()
print(*(int(sum(float(line.split()[-1]) for line in lines if line.startswith(metric))) for metric in sys.argv[2:]))' \
        "$etcd_scheme://$(etcd_address "$1")" "${@:2}"
}

etcd_metric() { # METRIC [NAME]
    etcd_metrics "${2:-etcd}" "$1"
}
