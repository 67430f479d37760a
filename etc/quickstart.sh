#!/bin/bash
# Sets dlockfs up on a Debian machine, as root, and shows it at work.
#
#     etc/quickstart.sh               locks of this host: installs, builds, mounts /run/dlocks
#     etc/quickstart.sh --zookeeper   two mounts on a ZooKeeper of its own, /run/dlocks-a and /run/dlocks-b,
#                                     which exclude each other as two hosts do
#     etc/quickstart.sh --etcd        the same on an etcd of its own, /run/dlocks-c and /run/dlocks-d
#     etc/quickstart.sh --redis       the same on a Redis of its own, /run/dlocks-e and /run/dlocks-f
#     etc/quickstart.sh --stop        undoes all: processes, mounts, folders
#
# Can be repeated: what is up already stays up. Process ids, messages and the servers' data are in /run/dlockfs-quickstart.
#
# From the environment, for tests: DLOCKFS_QUICKSTART_RUN instead of /run; DLOCKFS_QUICKSTART_BUILD, a folder with a
# dlockfs that is built already.

set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${DLOCKFS_QUICKSTART_BUILD:-$source_dir/build}
run=${DLOCKFS_QUICKSTART_RUN:-/run}
state=$run/dlockfs-quickstart
dlockctl=${build#"$PWD"/}/src/dlockctl/dlockctl

say() {
    printf '%s\n' "$*"
}

die() {
    printf 'quickstart: %s\n' "$*" >&2
    exit 1
}

usage() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

#
# Packages and the program
#

# install_packages PACKAGE...: those that are not there yet. No server is started as a service of the machine.
install_packages() {
    local package missing=() policy=/usr/sbin/policy-rc.d
    for package; do
        [ "$(dpkg-query -Wf '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "Installing ${missing[*]} ..."
    export DEBIAN_FRONTEND=noninteractive
    if [ ! -e "$policy" ]; then
        # shellcheck disable=SC2064
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    { apt-get -qq install -y --no-install-recommends "${missing[@]}" ||
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}"; }; } \
        >"$state/apt.log" 2>&1 || die "apt-get failed: $(tail -n 1 "$state/apt.log") (all of it: $state/apt.log)"
    [ -z "$(trap -p EXIT)" ] || rm -f "$policy"
    trap - EXIT
}

build_dlockfs() {
    if [ -n "${DLOCKFS_QUICKSTART_BUILD:-}" ]; then
        return
    fi
    install_packages meson ninja-build gcc libc6-dev pkgconf libfuse3-dev fuse3 libzookeeper-mt-dev libinih-dev uthash-dev \
        libjansson-dev libncurses-dev libseccomp-dev libxxhash-dev libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler libc-ares-dev libssl-dev \
        libhiredis-dev
    say "Building in $build ..."
    { { [ -e "$build/build.ninja" ] || meson setup "$build" "$source_dir"; } && meson compile -C "$build"; } \
        >"$state/build.log" 2>&1 || die "the build failed: $(tail -n 1 "$state/build.log") (all of it: $state/build.log)"
}

#
# Processes: $state/NAME.pid holds the id and the start time, because an id alone may be recycled
#

started() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    stat=${stat##*) }
    [ "${stat%% *}" != Z ] || return 1
    # shellcheck disable=SC2086
    set -- $stat
    echo "${20}"
}

record() {
    echo "$2 $(started "$2" || true)" >"$state/$1.pid"
}

runs() {
    local process time
    [ -e "$state/$1.pid" ] || return 1
    read -r process time <"$state/$1.pid"
    [ -n "$time" ] && [ "$(started "$process")" = "$time" ]
}

# wait_for SECONDS COMMAND...
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

ended() {
    ! runs "$1"
}

# end NAME: politely, then not.
end() {
    local process
    if runs "$1"; then
        read -r process _ <"$state/$1.pid"
        kill "$process" 2>/dev/null || true
        if ! wait_for 15 ended "$1"; then
            kill -KILL "$process" 2>/dev/null || true
            wait_for 5 ended "$1" || say "Process $process ($1) does not end."
        fi
    fi
    rm -f "$state/$1.pid"
}

#
# Mounts
#

# mounted_type MOUNTPOINT: the type of the file system that is mounted there, nothing if none is.
mounted_type() {
    awk -v "point=$1" '$2 == point { type = $3 } END { print type }' /proc/self/mounts
}

usable() {
    [ "$(mounted_type "$1")" = fuse.dlockfs ] && timeout 5 stat -f "$1" >/dev/null 2>&1
}

usable_or_ended() {
    usable "$1" || ended "$2"
}

# mount_locks NAME STORE: mounts $run/NAME, unless it is.
mount_locks() {
    local mountpoint=$run/$1 type
    type=$(mounted_type "$mountpoint")
    if usable "$mountpoint"; then
        say "$mountpoint is mounted already."
        return
    fi
    if [ -n "$type" ] && [ "$type" != fuse.dlockfs ]; then
        die "$mountpoint is taken by a mount of type $type; unmount it or move it away first"
    fi
    if [ -z "$type" ] && [ -d "$mountpoint" ] && [ -n "$(ls -A "$mountpoint")" ]; then
        die "$mountpoint exists and is not empty; move it away first"
    fi
    if [ -z "$type" ] && [ ! -d "$mountpoint" ]; then
        touch "$state/$1.made" # by dlockfs
    fi
    setsid "$build/dlockfs" --foreground --store "$2" -o new_root "$mountpoint" >"$state/$1.log" 2>&1 </dev/null &
    record "$1" $!
    wait_for 30 usable_or_ended "$mountpoint" "$1" || die "$mountpoint did not come up: see $state/$1.log"
    usable "$mountpoint" || die "$mountpoint did not come up: $(tail -n 1 "$state/$1.log")"
    say "Mounted $mountpoint on $2"
}

# unmount_locks NAME
unmount_locks() {
    local mountpoint=$run/$1
    [ -e "$state/$1.pid" ] || return 0
    end "$1"
    if [ "$(mounted_type "$mountpoint")" = fuse.dlockfs ] && ! usable "$mountpoint"; then
        umount -l "$mountpoint" || true
    fi
    if [ -e "$state/$1.made" ] && [ -z "$(mounted_type "$mountpoint")" ]; then
        chattr -i "$mountpoint" 2>/dev/null || true # a dlockfs that was killed has left it
        rmdir "$mountpoint" 2>/dev/null || true
    fi
    rm -f "$state/$1.made"
    say "Stopped $mountpoint"
}

#
# The servers
#

zookeeper_serves() {
    timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && echo srvr >&3 && cat <&3' - "$1" 2>/dev/null | grep -q '^Mode'
}

etcd_serves() {
    ETCDCTL_API=3 timeout 5 etcdctl --endpoints="127.0.0.1:$1" endpoint health >/dev/null 2>&1
}

redis_serves() {
    [ "$(timeout 5 redis-cli -h 127.0.0.1 -p "$1" PING 2>/dev/null)" = PONG ]
}

# serves_or_ended NAME PORT
serves_or_ended() {
    "$1_serves" "$2" || ended "$1"
}

# A port below the range from which the kernel takes ports by itself.
free_port() {
    local port
    while :; do
        port=$((10000 + RANDOM % 20000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
}

start_zookeeper() {
    local folder=$state/zookeeper port as=()
    if runs zookeeper; then
        say "ZooKeeper runs already on 127.0.0.1:$(<"$folder/port")"
        return
    fi
    mkdir -p "$folder/data"
    [ -e "$folder/port" ] || free_port >"$folder/port"
    port=$(<"$folder/port")
    cat >"$folder/zoo.cfg" <<END
dataDir=$folder/data
clientPort=$port
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
END
    if id zookeeper >/dev/null 2>&1; then
        chown -R zookeeper: "$folder/data"
        as=(setpriv --reuid=zookeeper --regid=zookeeper --clear-groups --)
    fi
    setsid "${as[@]}" java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp /usr/share/java/zookeeper.jar \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$folder/zoo.cfg" >"$state/zookeeper.log" 2>&1 </dev/null &
    record zookeeper $!
    wait_for 60 serves_or_ended zookeeper "$port" || die "ZooKeeper does not answer: see $state/zookeeper.log"
    runs zookeeper || die "ZooKeeper ended: $(tail -n 1 "$state/zookeeper.log")"
    say "Started ZooKeeper on 127.0.0.1:$port, with its data in $folder"
}

start_etcd() {
    local folder=$state/etcd port peer_port as=()
    if runs etcd; then
        say "etcd runs already on 127.0.0.1:$(<"$folder/port")"
        return
    fi
    mkdir -p "$folder/data"
    [ -e "$folder/port" ] || free_port >"$folder/port"
    port=$(<"$folder/port")
    peer_port=$(free_port)
    if id etcd >/dev/null 2>&1; then
        chown -R etcd: "$folder/data"
        as=(setpriv --reuid=etcd --regid=etcd --clear-groups --)
    fi
    chmod 700 "$folder/data"
    setsid "${as[@]}" etcd --name quickstart --data-dir "$folder/data" \
        --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
        --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-cluster "quickstart=http://127.0.0.1:$peer_port" --logger zap --log-level warn \
        >"$state/etcd.log" 2>&1 </dev/null &
    record etcd $!
    wait_for 60 serves_or_ended etcd "$port" || die "etcd does not answer: see $state/etcd.log"
    runs etcd || die "etcd ended: $(tail -n 1 "$state/etcd.log")"
    say "Started etcd on 127.0.0.1:$port, with its data in $folder"
}

start_redis() {
    local folder=$state/redis port as=()
    if runs redis; then
        say "Redis runs already on 127.0.0.1:$(<"$folder/port")"
        return
    fi
    mkdir -p "$folder/data"
    [ -e "$folder/port" ] || free_port >"$folder/port"
    port=$(<"$folder/port")
    if id redis >/dev/null 2>&1; then
        chown -R redis: "$folder/data"
        as=(setpriv --reuid=redis --regid=redis --clear-groups --)
    fi
    setsid "${as[@]}" redis-server --bind 127.0.0.1 --port "$port" --dir "$folder/data" --appendonly yes --save '' \
        >"$state/redis.log" 2>&1 </dev/null &
    record redis $!
    wait_for 60 serves_or_ended redis "$port" || die "Redis does not answer: see $state/redis.log"
    runs redis || die "Redis ended: $(tail -n 1 "$state/redis.log")"
    say "Started Redis on 127.0.0.1:$port, with its data in $folder"
}

#
# What there is to see
#

clock() {
    date +%H:%M:%S.%1N
}

# demonstrate FIRST-FILE SECOND-FILE WHO-FIRST WHO-SECOND: one holds for two seconds, the other waits.
demonstrate() {
    local first=$1 second=$2 one=$3 two=$4 twice="" holder
    export -f clock
    say
    say "Two processes want one lock:"
    say "  $(clock)  $one: flock $first ..."
    rm -f "$state/held"
    flock "$first" bash -c 'echo "  $(clock)  $1: has the lock, works for 2 seconds"; touch "$2"; sleep 2
        while [ -e "$2" ]; do sleep 0.1; done
        echo "  $(clock)  $1: is done"' - "$one" "$state/held" &
    holder=$!
    wait_for 20 test -e "$state/held" || die "the lock could not be taken: see $state/*.log"
    flock -n "$second" true && twice=yes
    rm -f "$state/held" # the holder goes on as long as it is there
    [ -z "$twice" ] || die "the lock was given twice"
    say "  $(clock)  $two: flock -n $second is refused, the lock is held; so it waits with flock $second"
    timeout 30 flock "$second" bash -c 'echo "  $(clock)  $1: has waited, and has the lock"' - "$two" ||
        die "the lock was not handed over: see $state/*.log"
    wait "$holder"
    rm -f "$state/held"
}

embedded() {
    local shared
    mount_locks dlocks local:
    demonstrate "$run/dlocks/demo" "$run/dlocks/demo" "process 1" "process 2"
    if grep -q '^store=local:' "$run/dlocks/.dlockfs/status"; then
        shared="These locks are of this host only, because no server is configured."
    else
        shared="These locks are shared with other hosts, as they were mounted before."
    fi
    cat <<END

$shared To try next:
  flock $run/dlocks/backup sleep 60 &      hold a lock
  flock -n $run/dlocks/backup echo mine    is refused while it is held
  flock $run/dlocks/backup echo mine       waits for it
  ls -l $run/dlocks                        the locks in use here
  $dlockctl --mount $run/dlocks ls    who holds what
  $(printf %-40s "$0 --zookeeper") locks that are shared by hosts, through ZooKeeper
  $(printf %-40s "$0 --etcd") the same through etcd
  $(printf %-40s "$0 --redis") the same through Redis
  $(printf %-40s "$0 --stop") undo all this
END
}

with_zookeeper() {
    install_packages zookeeper
    start_zookeeper
    share ZooKeeper "zookeeper://127.0.0.1:$(<"$state/zookeeper/port")/dlockfs" a b
    cat <<END
For hosts and servers of your own see etc/doc/several-hosts.md.
  $(printf %-40s "$0 --stop") undo all this
END
}

with_etcd() {
    install_packages etcd-server etcd-client
    start_etcd
    share etcd "etcd://127.0.0.1:$(<"$state/etcd/port")/dlockfs" c d
    cat <<END
  ETCDCTL_API=3 etcdctl --endpoints=127.0.0.1:$(<"$state/etcd/port") get --prefix /dlockfs
                                           what etcd has of it
For a cluster of your own see etc/doc/etcd.md.
  $(printf %-40s "$0 --stop") undo all this
END
}

with_redis() {
    install_packages redis-server
    start_redis
    share Redis "redis://127.0.0.1:$(<"$state/redis/port")/dlockfs" e f
    cat <<END
  redis-cli -p $(<"$state/redis/port") SET dlockfs/backup me NX PX 30000
                                           locks it as a script would
What that is worth is in etc/doc/redis.md.
  $(printf %-40s "$0 --stop") undo all this
END
}

# share WHAT STORE ONE OTHER: two mounts of the store, dlocks-ONE and dlocks-OTHER.
share() {
    local one=$run/dlocks-$3 other=$run/dlocks-$4
    mount_locks "dlocks-$3" "$2"
    mount_locks "dlocks-$4" "$2"
    demonstrate "$one/demo" "$other/demo" "host $3" "host $4"
    cat <<END

Both mounts stand for hosts that share locks through $1. To try next:
  flock -F $one/backup sleep 60 & hold a lock on "host $3"
  flock -n $other/backup echo mine  is refused on "host $4"
  flock $other/backup echo mine     waits for it
  $dlockctl --mount $other ls    who holds what
  kill -9 %1                               the holder dies: "host $4" gets the lock
END
}

stop() {
    local name
    if [ ! -d "$state" ]; then
        say "Nothing to stop."
        return
    fi
    for name in dlocks dlocks-{a,b,c,d,e,f}; do
        unmount_locks "$name"
    done
    for name in zookeeper etcd redis; do
        [ -e "$state/$name.pid" ] || continue
        end "$name"
        say "Stopped $name"
    done
    rm -rf --one-file-system -- "$state"
}

command=embedded
case $#:${1:-} in
    0:) ;;
    1:--zookeeper) command=with_zookeeper ;;
    1:--etcd) command=with_etcd ;;
    1:--redis) command=with_redis ;;
    1:--stop) command=stop ;;
    1:--help | 1:-h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac
[ "$(id -u)" -eq 0 ] || die "must be run as root"
if [ "$command" != stop ]; then
    [ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
    [ -c /dev/fuse ] || die "there is no /dev/fuse: the kernel has no FUSE here"
    mkdir -p "$state"
    build_dlockfs
fi
"$command"
