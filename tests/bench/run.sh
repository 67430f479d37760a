#!/bin/bash
# How fast locks are, side by side on this machine: dlockfs, libraries and programs that use the same ZooKeeper server,
# what people use instead, and the floor under each.
#
#     tests/bench/run.sh [WORKLOAD...]
#
#     alone       one client, a lock that nobody else wants
#     many        64 and 1,000 locks at once
#     contended   one lock that 2, 8, 32, 128 clients want, on one host and on three
#     readers     one lock, 95 of 100 times shared
#     waiters     10 to 10,000 waiters on one lock
#     savings     three hosts with four clients each: how many requests handoff and keep save
#     crowded     a lock that nobody else wants, while 100,000 others are held
#
# Without names: all of them, which takes about 10 minutes where nothing else runs. Prints tables, and writes bench.csv
# and bench.svg to bench/ in the build folder. Installs Debian packages that are missing. Ends with 1 if a lock was held
# by two at a time.
#
# From the environment: QUICK=1, sizes that only show that all works; CONTENDERS="raw strict ...", only these (the keys
# in the CSV); FORCE_SYNC=no, ZooKeeper does not wait for its disk, which leaves the cost of everything else;
# OUTPUT, another folder for the results; DLOCKFS_BUILD, another build folder.

case ${1:-} in
    -h | --help)
        sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
# shellcheck source=../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=servers.sh
. "$tests/bench/servers.sh"
# shellcheck source=packages.sh
. "$tests/bench/packages.sh"

handoff=32
keep=10s
jars=/usr/share/java
classpath=$dir/java:$(printf "$jars/%s.jar:" curator-recipes curator-framework curator-client zookeeper zookeeper-jute \
    zookeeper-recipes-lock guava slf4j-api slf4j-nop)
programs=$build/tests/bench
output=${OUTPUT:-$build/bench}

# wanted KEY...: whether any of these contenders is to take part.
wanted() {
    local key
    [ -n "${CONTENDERS:-}" ] || return 0
    for key; do
        [[ " $CONTENDERS " != *" $key "* ]] || return 0
    done
    return 1
}

# contender KEY LABEL WORDS COMMAND...: the command starts its driver (driver.py). WORDS are the workloads that it takes
# part in, with the greatest number of clients; "zookeeper" if its requests go to ZooKeeper, etcd=HOST:PORT if to etcd; mount=DIR if that tells
# the requests of FUSE; hosts=N if its clients take turns with so many hosts; "holds" if it can hold the
# other locks of the workload crowded.
contender() {
    local key=$1 label=$2 words=$3
    shift 3
    ! wanted "$key" || printf '%s\t%s\t%s\t%s\n' "$key" "$label" "$words" "${*@Q}" >>"$dir/contenders"
}

# missing KEY LABEL WORDS REASON: named in the tables, with the reason.
missing() {
    ! wanted "$1" || printf '%s\t%s\t%s missing\t%s\n' "$1" "$2" "$3" "$4" >>"$dir/contenders"
}

# mounts NAME OPTION...: three hosts with the same configuration, $dir/NAME1 to NAME3, but for the number of the host where an
# option has %host. Fails if they do not start.
mounts() {
    local name=$1 number
    shift
    if ! reason=$("$dlockfs" --check --store "$store" "${@//%host/1}" "$dir" 2>&1); then
        reason=${reason##*$'\n'}
        return 1
    fi
    for number in 1 2 3; do
        start_dlockfs "$name$number" "${@//%host/$number}"
    done
}

# on_mounts NAME LABEL WORDS WORDS-OF-THREE-HOSTS OPTION...: one host, and three, of dlockfs with these options.
on_mounts() {
    local name=$1 label=$2 one=$3 three=$4 command=contender
    local server=${server_word:-zookeeper}
    shift 4
    wanted "$name" "${name}3" || return 0
    mounts "$name" "$@" || command=missing
    if [ "$command" = contender ]; then
        contender "$name" "$label" "$one $server mount=$dir/${name}1" "$programs/flock_clients" flock "$dir/${name}1/job"
        contender "${name}3" "$label on 3 hosts" "$three $server hosts=3" \
            "$programs/flock_clients" flock "$dir/$name"{1,2,3}/job
    else
        missing "$name" "$label" "$one" "$reason"
        missing "${name}3" "$label on 3 hosts" "$three" "$reason"
    fi
}

everything="alone many contended readers waiters crowded"

# One host, under a service manager that keeps what the daemon knows.
add_kept() {
    wanted kept || return 0
    start_kept kept1
    contender kept "dlockfs strict, state kept" "alone many contended waiters zookeeper mount=$dir/kept1" \
        "$programs/flock_clients" flock "$dir/kept1/job"
}

# peers: the option of hosts that tell each other.
peers() {
    echo "peers=127.0.0.%host:$(free_port)"
}

add_dlockfs() {
    local kind
    on_mounts strict "dlockfs strict" "$everything holds" "contended readers waiters=1000 savings"
    on_mounts handoff "dlockfs handoff=$handoff" "$everything" "contended readers waiters=1000 savings" -o "handoff=$handoff"
    on_mounts keep "dlockfs keep=$keep" "$everything" "contended readers waiters=1000 savings" -o "keep=$keep"
    on_mounts both "dlockfs handoff and keep" "" "savings" -o "handoff=$handoff,keep=$keep"
    on_mounts peers "dlockfs strict with peers" "" "contended waiters=1000" -o "$(peers)"
    wanted strict || return 0
    for kind in open excl range; do
        contender "$kind" "dlockfs strict by $kind" "alone zookeeper mount=$dir/strict1" \
            "$programs/flock_clients" "$kind" "$dir/strict1/$kind"
    done
}

# Lock files, on one host and on three.
add_files() {
    local kind
    wanted create create3 mkdir mkdir3 || return 0
    printf '%s\n' '[mount]' 'directories = files' '[locks "files"]' 'style = file' >"$dir/files.ini"
    mounts files --config "$dir/files.ini"
    for kind in create mkdir; do
        contender "$kind" "dlockfs style = file, $kind" "alone contended zookeeper mount=$dir/files1" \
            "$programs/flock_clients" "$kind" "$dir/files1/files/$kind"
        contender "${kind}3" "dlockfs style = file, $kind on 3 hosts" "contended zookeeper hosts=3" \
            "$programs/flock_clients" "$kind" "$dir"/files{1,2,3}/files/"$kind"
    done
}

# compile_java: the driver for libraries in Java, into $dir/java.
compile_java() {
    needs java javac || return
    mkdir "$dir/java"
    if ! javac -proc:none -implicit:none -d "$dir/java" -cp "$classpath" "$tests/Connections.java" \
        "$tests/bench/JavaClients.java" \
        >"$dir/javac.out" 2>&1; then
        reason="its driver does not compile: $(head -n 1 "$dir/javac.out")"
        return 1
    fi
}

add_java() {
    local command=missing driver=()
    wanted mutex rw recipe || return 0
    if compile_java; then
        command=contender
        driver=(java -Xmx1g -Xss256k -XX:+UseSerialGC -cp "$classpath" JavaClients "$(zookeeper_address)")
    fi
    java_contender() {
        "$command" "$1" "$2" "$3 zookeeper" "${driver[@]:-$reason}" ${driver[0]:+"$1"}
    }
    java_contender mutex "Curator InterProcessMutex" "alone many contended waiters=1000 crowded savings"
    java_contender rw "Curator InterProcessReadWriteLock" "alone many contended readers"
    java_contender recipe "ZooKeeper's recipe in Java" "alone"
}

add_kazoo() {
    local words="alone many contended waiters=1000 crowded savings zookeeper"
    missing kazoo-rw "kazoo ReadLock and WriteLock" readers \
        "in 2.8 a reader waits for writers that came after it, and they wait for it"
    wanted kazoo || return 0
    if "$python" -c 'import kazoo' 2>/dev/null; then
        contender kazoo "kazoo" "$words" "$python" "$tests/bench/kazoo_clients.py" "$(zookeeper_address)"
    else
        missing kazoo "kazoo" "$words" "python3-kazoo is not installed"
    fi
}

add_etcd() {
    local words="alone many contended waiters=1000" words_of_tool="alone contended=32" server_word=etcd etcd_durable=yes store
    wanted raw-etcd {strict,peers}-etcd{,3} etcd etcdctl || return 0
    if needs etcd etcdctl; then
        start_etcd
        server_word=etcd=$(etcd_address)
        contender etcd "etcd lock API" "$words $server_word" "$python" "$tests/bench/etcd_clients.py" "$(etcd_address)"
        contender etcdctl "etcdctl lock" "$words_of_tool $server_word" \
            env -u ETCDCTL_ENDPOINTS "$python" "$tests/bench/etcdctl_clients.py" "$ETCDCTL_ENDPOINTS"
    else
        missing etcd "etcd lock API" "$words etcd" "$reason"
        missing etcdctl "etcdctl lock" "$words_of_tool etcd" "$reason"
    fi
    if ! ninja -C "$build" tests/bench/raw_etcd >"$dir/build.log" 2>&1; then
        reason="dlockfs is built without etcd"
    elif [ "$server_word" != etcd ]; then
        contender raw-etcd "etcd, raw C client" "alone many $server_word" "$programs/raw_etcd" "$(etcd_address)"
        on_mounts strict-etcd "dlockfs strict on etcd" "alone many contended waiters" "contended waiters=1000"
        on_mounts peers-etcd "dlockfs strict with peers on etcd" "" "contended waiters=1000" -o "$(peers)"
        return
    fi
    missing raw-etcd "etcd, raw C client" "alone many etcd" "$reason"
    missing strict-etcd "dlockfs strict on etcd" "alone many contended waiters etcd" "$reason"
}

# Redis as it comes, but without snapshots.
# shellcheck disable=SC2034 # for redis.sh
add_redis() {
    local words="alone many contended savings" words_raw="alone many" server_word=redis redis_durable=no store
    wanted raw-redis redis {strict,handoff,keep}-redis{,3} || return 0
    if ! needs redis-server redis-cli; then
        missing raw-redis "Redis, raw C client" "$words_raw redis" "$reason"
        missing redis "Redis SET NX PX" "$words redis" "$reason"
        return
    fi
    start_redis
    server_word=redis=$(redis_address)
    if ninja -C "$build" tests/bench/raw_redis >"$dir/build.log" 2>&1; then
        contender raw-redis "Redis, raw C client" "$words_raw $server_word" "$programs/raw_redis" "$(redis_address)"
    else
        missing raw-redis "Redis, raw C client" "$words_raw $server_word" "libhiredis-dev is not installed"
    fi
    if "$python" -c 'import redis' 2>/dev/null; then
        contender redis "Redis SET NX PX" "$words $server_word" "$python" "$tests/bench/redis_clients.py" "$(redis_address)"
    else
        missing redis "Redis SET NX PX" "$words $server_word" "python3-redis is not installed"
    fi
    on_mounts strict-redis "dlockfs strict on Redis" "alone many contended" "contended savings"
    on_mounts handoff-redis "dlockfs handoff=$handoff on Redis" "contended" "contended savings" -o "handoff=$handoff"
    on_mounts keep-redis "dlockfs keep=$keep on Redis" "alone" "savings" -o "keep=$keep"
}

add_gluster() {
    local words="alone many contended readers waiters=1000" words_of_three="contended readers waiters=1000" inside
    wanted gluster gluster3 gluster-mkdir3 || return 0
    if start_gluster; then
        read -ra inside <<<"$gluster"
        contender gluster "GlusterFS flock" "$words" "${inside[@]}" "$programs/flock_clients" flock "$dir/gluster/mount1/job"
        contender gluster3 "GlusterFS flock on 3 hosts" "$words_of_three hosts=3" "${inside[@]}" \
            "$programs/flock_clients" flock "$dir"/gluster/mount{1,2,3}/job
        contender gluster-mkdir3 "GlusterFS mkdir on 3 hosts" "contended hosts=3" "${inside[@]}" \
            "$programs/flock_clients" mkdir "$dir"/gluster/mount{1,2,3}/lock
    else
        missing gluster "GlusterFS flock" "$words" "$reason"
        missing gluster3 "GlusterFS flock on 3 hosts" "$words_of_three" "$reason"
        missing gluster-mkdir3 "GlusterFS mkdir on 3 hosts" "contended" "$reason"
    fi
}

# What no lock on a FUSE mount goes below.
add_fuse_floor() {
    wanted fuse-floor || return 0
    mkdir "$dir/fuse-floor"
    start fuse-floor "$programs/fuse_floor" "$dir/fuse-floor"
    expect fuse-floor mounted
    contender fuse-floor "FUSE mount that locks nothing" alone "$programs/flock_clients" flock "$dir/fuse-floor/job"
}

add_tmpfs() {
    mkdir "$dir/tmpfs"
    mount -t tmpfs tmpfs "$dir/tmpfs"
    contender tmpfs "local flock on tmpfs" "alone many contended readers waiters=1000 crowded holds" \
        "$programs/flock_clients" flock "$dir/tmpfs/job"
}

for workload; do
    [[ $workload =~ ^(alone|many|contended|readers|waiters|crowded|savings)$ ]] ||
        fail "no such workload: $workload; $0 --help names them"
done
install_packages
[ -e "$build/build.ninja" ] || meson setup "$build" "$source_dir" >"$dir/build.log" || fail "$(tail "$dir/build.log")"
ninja -C "$build" dlockfs tests/bench/{raw,datagram,fuse_floor,flock_clients} >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
mkdir -p "$output"

begin=$SECONDS
zookeeper_options=(-Xmx1g -XX:TieredStopAtLevel=4 "-Dzookeeper.forceSync=${FORCE_SYNC:-yes}")
start_zookeeper
# GlusterFS comes first: its namespace has a copy of all mounts that were there before.
: >"$dir/contenders"
contender raw "ZooKeeper, raw C client" "alone many crowded zookeeper" "$programs/raw" "$(zookeeper_address)"
contender udp "UDP" "" "$programs/datagram"
add_gluster
add_dlockfs
add_kept
add_files
add_java
missing recipe-c "ZooKeeper's recipe in C" "alone" "no Debian package has it"
add_kazoo
add_etcd
add_redis
add_fuse_floor
add_tmpfs
status=0
"$python" "$tests/bench/bench.py" "$dir/contenders" "$(zookeeper_address)" "$output" "$@" || status=$?
echo "took $((SECONDS - begin)) s"
exit "$status"
