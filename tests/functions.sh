# shellcheck shell=bash
# What every system test starts with: `. "$(dirname "$0")/../functions.sh"`.
#
# A test is a bash program that ends with 0 (passed), 77 (skipped, with a reason) or anything else (failed).
# It has a folder of its own, $dir, in which everything lives that it starts: servers of ZooKeeper, etcd and Redis, daemons
# (each one is a "host" and mounts $dir/HOST) and programs that use them. All of that is ended and taken away
# when the test ends, however it ends. No port, path or time is fixed; whatever is waited for has a deadline.
#
# From the environment: DLOCKFS_BUILD, the build folder (default: build/ in the source tree);
# DLOCKFS_TEST_DIR, an empty folder to use as $dir; KEEP=1 to keep it; CI=true to fail where something that
# the test requires is missing, instead of skipping; DAEMON_USER=root to have no user dlockfs on this machine.

set -Eeuo pipefail
shopt -s inherit_errexit

# Daemons of root go on as the user dlockfs where there is one, as the package makes it. This machine's users stay as they are:
# a test that is to have other ones has a mount namespace with a list of its own.
daemon_user=${DAEMON_USER:-dlockfs}
if [ "$(id -u)" -eq 0 ] && [ -z "${own_users:-}" ]; then
    export own_users=no
    [ "$daemon_user" = "$(id -un dlockfs 2>/dev/null || echo root)" ] || own_users=yes
    [ $own_users = no ] || exec unshare --mount --propagation private -- "$BASH" "$0" "$@"
fi

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(dirname "$tests")
build=${DLOCKFS_BUILD:-$source_dir/build}
dlockfs=$build/dlockfs
# shellcheck disable=SC2034 # for the tests
dlockctl=$build/src/dlockctl/dlockctl
python=/usr/bin/python3
deadline=180 # seconds that anything which must happen is given: an election alone may take ZooKeeper half a minute
prompt=4    # seconds for what must wait for no answer of the servers: less than try_limit and what sessions live there

servers_under=() # a command that runs the servers of ZooKeeper, etcd and Redis: theirs follows

# shellcheck source=processes.sh
. "$tests/processes.sh"
# shellcheck source=etcd.sh
. "$tests/etcd.sh"
# shellcheck source=redis.sh
. "$tests/redis.sh"

if [ -n "${DLOCKFS_TEST_DIR:-}" ]; then
    dir=$DLOCKFS_TEST_DIR
else
    dir=$(mktemp -d "${TMPDIR:-/tmp}/dlockfs-test.XXXXXX")
fi
umask 022 # the programs of other users read what is made here
chmod 755 "$dir"
mkdir -p "$dir/pids"
test_dir=$dir # also in a scene

# users_begin: of the namespace, with the user dlockfs or without.
users_begin() {
    local file line
    mkdir "$dir/users"
    for file in passwd group; do
        line=dlockfs:x:64999:64999::/nonexistent:/usr/sbin/nologin
        [ "$file" = passwd ] || line=dlockfs:x:64999:
        grep -v '^dlockfs:' "/etc/$file" >"$dir/users/$file"
        [ "$daemon_user" = root ] || echo "$line" >>"$dir/users/$file"
        mount --bind "$dir/users/$file" "/etc/$file"
    done
    export own_users=begun
}
[ "${own_users:-}" != yes ] || users_begin

# Reports of the sanitizers go to files, because a daemon in the background has no stderr.
export ASAN_OPTIONS="log_path=$dir/sanitizer:detect_leaks=1:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$tests/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="log_path=$dir/sanitizer:print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}"
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$tests/lib # what programs of one folder import of several
unset LC_ALL
export LC_CTYPE=C.UTF-8

hosts=()     # whose daemon runs
store=local: # what start_dlockfs mounts

# The test's own stderr: that of a command is often redirected while it fails.
exec {stderr}>&2

fail() {
    echo "failed: $*" >&$stderr
    exit 1
}

# violation WHAT: of what dlockfs promises; tests/run.sh does not run such a test again.
violation() {
    fail "violation: $*"
}

skip() {
    echo "skipped: $*"
    exit 77
}

# requires COMMAND...: the test needs this to succeed.
requires() {
    if ! "$@" >/dev/null 2>&1; then
        [ "${CI:-}" != true ] || fail "required here: $*"
        skip "requires: $*"
    fi
}

# numbers ARGUMENT...: what a measurement was given is numbers; else it says what it is, and how to call it.
numbers() {
    local argument
    for argument; do
        [[ ! $argument =~ ^[1-9][0-9]*$ ]] || continue
        sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
        [[ $argument = -h || $argument = --help ]] || fail "expected a number, found $argument"
        exit 0
    done
}

#
# The end of a test
#

cleanups=()
scenes=() # the shells of those that go on

# cleanup_fn COMMAND...: to be run when the test ends; the last one first.
cleanup_fn() {
    cleanups=("$(printf '%q ' "$@")" "${cleanups[@]}")
}

on_exit() {
    local status=$? command host file
    trap - EXIT ERR
    trap '' INT TERM HUP PIPE # nobody may read what is said of a failure
    set +e
    exec 2>&$stderr
    [ ${#scenes[@]} -eq 0 ] || { kill "${scenes[@]}"; wait "${scenes[@]}"; } 2>/dev/null
    for command in "${cleanups[@]}"; do
        eval "$command"
    done
    if [ "$status" -eq 0 ]; then
        # A daemon that does not end well fails the test. In a subshell, because that ends in exit.
        for host in "${hosts[@]}"; do
            end_dlockfs "$host" || status=1
        done
    fi
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
        show_state
    fi
    disown -a # or the shell would report the end of each
    processes_end "$dir"
    mounts_end "$dir"
    for file in "$dir"/sanitizer*; do
        [ -e "$file" ] || continue
        echo "--- sanitizer report:" >&2
        head -n 80 "$file" >&2
        status=1
    done
    if [ -n "${KEEP:-}" ]; then
        echo "kept: $dir"
    else
        folder_remove "$dir" || status=1
    fi
    [ -z "${DLOCKFS_TEST_TIMES:-}" ] || times >"$DLOCKFS_TEST_TIMES"
    exit "$status"
}

# What was the state when the test failed?
show_state() {
    local file name
    for file in "$dir"/*.log "$dir"/*.out; do
        [ -s "$file" ] || continue
        grep -v '^SLF4J' "$file" >"$dir/shown" || continue
        echo "--- end of ${file##*/}:" >&2
        tail -n 25 "$dir/shown" >&2
    done
    echo "--- processes:" >&2
    for file in "$dir"/pids/*; do
        [ -e "$file" ] || continue
        name=${file##*/}
        if process_alive "$dir" "$name"; then
            echo "$name: $(ps -o pid=,stat=,wchan:24=,args= -p "$(pid "$name")" 2>/dev/null)" >&2
        fi
    done
}

set_traps() {
    trap on_exit EXIT
    trap 'echo "$0:$LINENO: failed: $BASH_COMMAND" >&$stderr' ERR
    trap 'echo "$0:$LINENO: interrupted in: $BASH_COMMAND" >&$stderr; exit 1' INT TERM HUP
}
set_traps

#
# Parts of a test that need nothing of each other
#

# scene NAME COMMAND...: goes on beside the rest of the test, in a shell of its own, until scenes_end. Its $dir is a folder of its own,
# $dir/NAME, so its hosts, servers and programs have names of their own, too; of those of the test it can use the servers.
scene() {
    play_scene "$@" &
    scenes+=($!)
}

play_scene() {
    dir=$dir/$1
    cleanups=()
    hosts=()
    scenes=()
    set_traps
    mkdir -p "$dir/pids"
    "${@:2}"
}

# scenes_end: waits for all of them; none may have failed.
scenes_end() {
    local process failed=
    for process in "${scenes[@]}"; do
        wait "$process" || failed=yes
    done
    scenes=()
    [ -z "$failed" ] || fail "a scene has failed"
}

#
# Waiting and asserting
#

now_ms() {
    local now=${EPOCHREALTIME/[^0-9]/}
    echo "${now%???}"
}

# A pipe in which nothing ever is: to wait for it is to sleep, without a process.
exec {nothing}<> <(:)

# wait_until SECONDS COMMAND...: until the command succeeds; after so long the test has failed. Looks often at first, ten times
# a second later on: tests that wait leave the processors to others.
wait_until() {
    local seconds=$1 end=$((${EPOCHREALTIME/[^0-9]/} + $1 * 1000000)) pause pause_ms=10
    shift
    until "$@" 2>/dev/null; do
        [ "${EPOCHREALTIME/[^0-9]/}" -lt "$end" ] || fail "not within $seconds s: $*"
        printf -v pause '0.%03d' "$pause_ms"
        read -r -t "$pause" -u "$nothing" || true
        pause_ms=$((pause_ms < 80 ? pause_ms * 5 / 4 : 100))
    done
}

# expect_status STATUS COMMAND...
expect_status() {
    local expected=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -eq "$expected" ] || fail "status $status instead of $expected: $*"
}

# refused COMMAND...: the command must end with a status from 1 to 123, so not by a signal or a deadline.
refused() {
    local status=0
    "$@" || status=$?
    [ "$status" -ne 0 ] || fail "should have failed: $*"
    [ "$status" -lt 124 ] || fail "status $status: $*"
}

# finds ARGUMENTS of grep: whether the input has it. Reads all of it, as who writes into a pipe that is closed early fails.
finds() {
    grep "$@" >/dev/null
}

# expect_equal WHAT EXPECTED FOUND
expect_equal() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
}

# soon COMMAND...: the command must end at once.
soon() {
    local status=0
    timeout --kill-after=1 "$prompt" "$@" || status=$?
    [ "$status" -lt 124 ] || fail "took longer than $prompt s (status $status): $*"
    return "$status"
}

#
# Programs in the background
#

# start NAME COMMAND...: runs it in the background, with its output in $dir/NAME.out.
start() {
    local name=$1
    shift
    gone "$name" || fail "$name was started before and still runs"
    : >"$dir/$name.out" # before anybody looks: the redirection below is the child's
    setsid "$@" >"$dir/$name.out" 2>&1 </dev/null &
    process_record "$dir" "$name" $!
}

pid() {
    local number=
    { read -r number _ <"$dir/pids/$1"; } 2>/dev/null || true
    [ -n "$number" ] && echo "$number"
}

alive() {
    process_alive "$dir" "$1"
}

gone() {
    ! process_alive "$dir" "$1"
}

send_signal() {
    process_signal "$dir" "$1" "$2"
}

# finish NAME [SECONDS]: waits for the end of a program and returns its status.
finish() {
    local number
    number=$(pid "$1")
    wait_until "${2:-$deadline}" gone "$1"
    rm "$dir/pids/$1"
    wait "$number"
}

# group_gone PID: nothing of what started as that process runs any more, no child either.
group_gone() {
    ! pgrep -g "$1" -r D,R,S,T,t >/dev/null
}

# release NAME...: ends programs that were started with all their children.
release() {
    local name number
    for name; do
        send_signal "$name" KILL
    done
    for name; do
        number=$(pid "$name") || continue
        finish "$name" || true
        wait_until "$deadline" group_gone "$number"
    done 2>/dev/null # the shell's own words on who was killed
}

# said NAME TEXT: whether the program has written the line.
said() {
    local output IFS=$'\n'
    mapfile -t output 2>/dev/null <"$dir/$1.out" || return 1
    [[ $'\n'"${output[*]}"$'\n' == *$'\n'"$2"$'\n'* ]]
}

# ended NAME: a program that was started has ended with all its children.
ended() {
    [ -e "$dir/pids/$1" ] && gone "$1" && group_gone "$(pid "$1")"
}

# said_or_ended NAME TEXT
said_or_ended() {
    said "$1" "$2" || ended "$1"
}

# expect NAME TEXT [SECONDS]: waits until the program has written the line, which it must before it ends.
expect() {
    wait_until "${3:-$deadline}" said_or_ended "$1" "$2"
    said "$1" "$2" || fail "$1 has ended, and has not written: $2"
}

# for_others FILE: the path of a copy that all users can read and run: the source tree may be in a folder that is their owner's
# alone, such as a home.
for_others() {
    local copy=$dir/for-others/${1##*/}
    mkdir -p "${copy%/*}"
    [ -e "$copy" ] || install -m 755 "$1" "$copy"
    echo "$copy"
}

# The user dlockfs starts the daemon's program anew.
if [ "$(id -u)" -eq 0 ] && [ -x "$dlockfs" ] && id dlockfs >/dev/null 2>&1 &&
    ! setpriv --reuid=dlockfs --clear-groups test -x "$dlockfs"; then
    dlockfs=$(for_others "$dlockfs")
fi

# others_may_open FILE: for reading and writing.
others_may_open() {
    setpriv --reuid=65534 --regid=65534 --clear-groups sh -c ': <>"$1"' - "$1"
}

# fuse_for_others: /dev/fuse is for all users, as udev makes it; in a mount namespace of the test's own.
fuse_for_others() {
    ! others_may_open /dev/fuse 2>/dev/null || return 0
    mkdir "$dir/device"
    mount -t tmpfs -o mode=755 none "$dir/device"
    ! mknod -m 666 "$dir/device/fuse" c 10 229 || mount --bind "$dir/device/fuse" /dev/fuse
    requires others_may_open /dev/fuse
}

# hold NAME FLOCK-ARGUMENTS...: a program that takes the lock with flock(1), says "held" and keeps it until release.
hold() {
    local name=$1
    shift
    start "$name" flock "$@" sh -c 'echo held; exec sleep infinity'
}

# comes_free FILE: until the lock can be had; where another host released it, that takes until the servers know.
comes_free() {
    wait_until "$deadline" flock -n "$1" true
}

# call NAME FILE STEP...: a program that makes system calls on a file, one after the other: see lib/calls.py.
call() {
    local name=$1
    shift
    start "$name" "$python" -u "$tests/lib/calls.py" "$@"
}

# go NAME: lets a call go on that waits at the step await=NAME.
go() {
    touch "$dir/$1"
}

# asleep NAME: whether the program waits for the answer to a request, such as a lock.
asleep() {
    grep -q request_wait_answer "/proc/$(pid "$1")/task/"*/stack
}

#
# ZooKeeper
#

# A port below the range from which the kernel takes ports by itself, so that it stays free between a stop and a start. This
# test gets each only once, also when nobody has used it yet.
free_port() {
    mkdir -p "$test_dir/ports"
    "$python" - "$test_dir/ports" <<'END'
import os, random, socket, sys
while True:
    port = random.randrange(10000, 32000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            os.mkdir(f"{sys.argv[1]}/{port}")
        except OSError:
            continue
        print(port)
        break
END
}

# port_of NAME: of a server of the scene, or else of the test.
port_of() {
    local folder=$dir
    until [ -e "$folder/$1/port" ] || [ "$folder" = "$test_dir" ]; do
        folder=${folder%/*}
    done
    echo "$(<"$folder/$1/port")"
}

zookeeper_options=()        # additional options for java
zookeeper_configuration=""  # additional lines for zoo.cfg

zookeeper_address() {
    echo "127.0.0.1:$(port_of "${1:-zk}")"
}

# zookeeper_mode NAME: "standalone", "leader" or "follower"; fails unless the server is serving.
zookeeper_mode() {
    local answer
    answer=$(timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && echo srvr >&3 && cat <&3' - \
        "$(<"$dir/$1/port")" 2>/dev/null | sed -n 's/^Mode: //p') || return 1
    [ -n "$answer" ] && echo "$answer"
}

# How many requests the server has received so far, this question included.
zookeeper_received() {
    # shellcheck disable=SC2016
    timeout "$deadline" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && echo srvr >&3 && cat <&3' - \
        "$(<"$dir/$zookeeper_name/port")" | sed -n 's/^Received: //p'
}

zookeeper_serves() {
    zookeeper_mode "$1" >/dev/null
}

# zookeeper_configure NAME PORT [LINES]
zookeeper_configure() {
    mkdir -p "$dir/$1/data"
    echo "$2" >"$dir/$1/port"
    cat >"$dir/$1/zoo.cfg" <<END
dataDir=$dir/$1/data
clientPort=$2
clientPortAddress=127.0.0.1
tickTime=200
initLimit=50
syncLimit=10
maxClientCnxns=0
minSessionTimeout=400
maxSessionTimeout=600000
admin.enableServer=false
4lw.commands.whitelist=*
$zookeeper_configuration
${3:-}
END
}

# zookeeper_launch NAME: starts a configured server, without waiting for it.
zookeeper_launch() {
    setsid "${servers_under[@]}" java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
        -Dzookeeper.forceSync=no "${zookeeper_options[@]}" -cp /usr/share/java/zookeeper.jar \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$1/zoo.cfg" >>"$dir/$1.log" 2>&1 </dev/null &
    process_record "$dir" "$1" $!
}

# zookeeper_settled NAME: the server serves, or it has ended (its port was taken in the meantime).
zookeeper_settled() {
    gone "$1" || zookeeper_serves "$1"
}

# start_zookeeper [NAME]: a server with a data folder of its own; the second time with the same data and port.
# Sets the variable store to a URL on it.
start_zookeeper() {
    local name=${1:-zk} attempt
    requires test -e /usr/share/java/zookeeper.jar
    requires command -v java
    for attempt in 1 2 3 4 5; do
        if [ "$attempt" -gt 1 ] || [ ! -e "$dir/$name/port" ]; then
            zookeeper_configure "$name" "$(free_port)"
        fi
        zookeeper_launch "$name"
        wait_until "$deadline" zookeeper_settled "$name"
        if alive "$name"; then
            store=zookeeper://$(zookeeper_address "$name")/dlockfs
            return
        fi
        [ ! -e "$dir/$name/started" ] || break
    done
    fail "ZooKeeper does not start: $(tail -n 3 "$dir/$name.log")"
}

# stop_zookeeper [NAME]: its data stay, so that start_zookeeper goes on with them.
stop_zookeeper() {
    local name=${1:-zk}
    touch "$dir/$name/started" # from now on it keeps its port
    send_signal "$name" KILL
    finish "$name" 2>/dev/null || true
}

restart_zookeeper() {
    stop_zookeeper "${1:-zk}"
    start_zookeeper "${1:-zk}"
}

# start_ensemble N: servers zk1 to zkN, one ensemble. Sets the variable store to a URL of all of them.
start_ensemble() {
    local number lines="" servers=""
    for ((number = 1; number <= $1; number++)); do
        lines+="server.$number=127.0.0.1:$(free_port):$(free_port)"$'\n'
    done
    for ((number = 1; number <= $1; number++)); do
        zookeeper_configure "zk$number" "$(free_port)" "$lines"
        echo "$number" >"$dir/zk$number/data/myid"
        touch "$dir/zk$number/started"
        zookeeper_launch "zk$number"
        servers+=${servers:+,}$(zookeeper_address "zk$number")
    done
    for ((number = 1; number <= $1; number++)); do
        wait_until "$deadline" zookeeper_serves "zk$number"
    done
    store=zookeeper://$servers/dlockfs
}

# zookeeper_leader N: the name of the server that leads the ensemble of N.
zookeeper_leader() {
    wait_until "$deadline" zookeeper_find_leader "$1"
}

zookeeper_find_leader() {
    local number
    for ((number = 1; number <= $1; number++)); do
        if [ "$(zookeeper_mode "zk$number")" = leader ]; then
            echo "zk$number"
            return
        fi
    done
    return 1
}

# paused NAME: none of the program's threads runs any more. (Under a tracer that is t.)
paused() {
    alive "$1" && awk '$1 == "State:" && $2 !~ /^[Tt]$/ { runs = 1 } END { exit runs }' "/proc/$(pid "$1")"/task/*/status
}

# pause NAME: until it is resumed. kill(2) returns before the threads have stopped: on a busy machine one that has to run
# first would still do its work.
pause() {
    wait_until "$deadline" stop_threads "$1"
}

stop_threads() {
    send_signal "$1" STOP # each time: it may be another process by now
    paused "$1"
}

resume() {
    send_signal "$1" CONT
}

# guards_of HOST: the processes that watch the leases of its daemon.
guards_of() {
    helpers_of "$1" guard
}

# helpers_of HOST KINDS: the processes beside its daemon of these kinds, "guard|writer|warden".
helpers_of() {
    local process
    for process in $(pgrep -x "dlockfs-($2)" || true); do
        if tr '\0' '\n' <"/proc/$process/cmdline" | finds -xF "$dir/$1"; then
            echo "$process"
        fi
    done 2>/dev/null
}

# suspend HOST: the daemon and its guard, until the host awakes. When a daemon alone is paused for longer than its lease lasts,
# the guard ends it.
suspend() {
    local guard
    for guard in $(guards_of "$1"); do
        process_record "$dir" "guard-$1-$guard" "$guard" # to be ended with the test
        kill -STOP "$guard"
    done
    pause "$1"
}

awake() {
    local file
    resume "$1"
    for file in "$dir/pids/guard-$1-"*; do
        [ -e "$file" ] || continue
        process_signal "$dir" "${file##*/}" CONT
        rm "$file"
    done
}

# zookeeper COMMAND ARGUMENT...: see lib/zookeeper.py. Talks to the server $zookeeper_name.
zookeeper_name=zk
asker=$dir/asker # of the test: where the program is that asks
zookeeper() {
    local port connection address status output errors
    [ -e "$asker" ] || start_asker
    read -r port <"$asker"
    address=$(zookeeper_address "$zookeeper_name")
    exec {connection}<>"/dev/tcp/127.0.0.1/$port"
    printf '%s\0' $(($# + 1)) "${ZOOKEEPER_AUTH:-}" "$address" "$@" >&"$connection"
    {
        IFS= read -r -d '' -t $((deadline + 30)) status && IFS= read -r -d '' output && IFS= read -r -d '' errors
    } <&"$connection" || fail "no answer: zookeeper $*"
    exec {connection}>&-
    printf %s "$output"
    printf %s "$errors" >&2
    return "$status"
}

# start_asker: unless somebody else has just done so.
start_asker() {
    if mkdir "$asker.begun" 2>/dev/null; then
        setsid "$python" "$tests/lib/zookeeper.py" serve "$asker" >"$asker.out" 2>&1 </dev/null &
        process_record "$test_dir" asker $!
    fi
    wait_until "$deadline" test -e "$asker"
}

# wait_claims LOCK NUMBER: until so many claims stand in the queue of a lock.
wait_claims() {
    case $store in
        etcd:*) etcd_wait_claims "$@" ;;
        redis:*) redis_wait_claims "$@" ;;
        *) zookeeper wait-claims "/dlockfs/$1" "$2" "$deadline" ;;
    esac
}

#
# Daemons
#

is_mounted() {
    awk -v "point=$1" '$2 == point && $3 == "fuse.dlockfs" { found = 1 } END { exit !found }' /proc/self/mounts
}

not_mounted() {
    ! awk -v "point=$1" '$2 == point { found = 1 } END { exit !found }' /proc/self/mounts
}

# daemons_of MOUNTPOINT...: the processes that were started to mount there, by one of these arguments; not their guards.
daemons_of() {
    local process
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/exe")" = "$(readlink -f "$dlockfs")" ] &&
            ! grep -Eq '^dlockfs-(notifier|warden)' "$process/cmdline" &&
            tr '\0' '\n' <"$process/cmdline" | finds -xF "$(printf '%s\n' "$@")"; then
            echo "${process#/proc/}"
        fi
    done 2>/dev/null
}

mount_settled() {
    # The folder below may be seen for a moment, between the mount of a dead daemon and the new one.
    gone "$1" || { is_mounted "$dir/$1" && [ "$(timeout 5 stat -f -c %T "$dir/$1")" = fuseblk ]; }
}

# launch_dlockfs HOST [ARGUMENT...]: starts a daemon without waiting for it, with its messages in $dir/HOST.log.
launch_dlockfs() {
    local host=$1
    shift
    [ -x "$dlockfs" ] || fail "not built: $dlockfs"
    mkdir -p "$dir/$host" 2>/dev/null || true # it may be a dead mount
    setsid "$dlockfs" --foreground --store "$store" -o new_root "$@" "$dir/$host" >>"$dir/$host.log" 2>&1 </dev/null &
    process_record "$dir" "$host" $!
    hosts+=("$host")
}

# start_dlockfs HOST [ARGUMENT...]: a daemon that mounts $dir/HOST on $store.
start_dlockfs() {
    launch_dlockfs "$@"
    wait_until "$deadline" mount_settled "$1"
    alive "$1" || fail "the daemon of $1 ended: $(tail -n 3 "$dir/$1.log")"
}

forget_host() {
    local host left=()
    for host in "${hosts[@]}"; do
        [ "$host" = "$1" ] || left+=("$host")
    done
    hosts=("${left[@]}")
}

# end_dlockfs HOST [SIGNAL]: a clean stop, which must succeed in time and leave no mount.
end_dlockfs() {
    local host=$1 number status=0 waited
    number=$(pid "$host") || return 1
    kill "-${2:-TERM}" "$number" 2>/dev/null
    for ((waited = 0; waited < 750; waited++)); do
        process_alive "$dir" "$host" || break
        sleep 0.02
    done
    if process_alive "$dir" "$host"; then
        echo "failed: the daemon of $host did not end within 15 s" >&2
        return 1
    fi
    wait "$number" || status=$?
    rm -f "$dir/pids/$host"
    if [ "$status" -ne 0 ]; then
        echo "failed: the daemon of $host ended with status $status" >&2
        return 1
    fi
    if ! not_mounted "$dir/$host"; then
        echo "failed: the daemon of $host ended but its mount is still there" >&2
        return 1
    fi
}

# stop_dlockfs HOST [SIGNAL]
stop_dlockfs() {
    end_dlockfs "$@" || exit 1
    forget_host "$1"
}

# kill_dlockfs HOST: the daemon dies without a chance to do anything.
kill_dlockfs() {
    send_signal "$1" KILL
    finish "$1" 2>/dev/null || true
    forget_host "$1"
}

# start_proxy NAME [SERVER]: a link to the server that cut_link and join_link act on. Prints nothing; the address
# is in $dir/NAME/address. The server is ZooKeeper's, etcd's or Redis': the one that has no other name, unless one is given.
start_proxy() {
    local port server=zk
    [[ $store != etcd:* ]] || server=etcd
    [[ $store != redis*:* ]] || server=redis
    mkdir -p "$dir/$1"
    port=$(free_port)
    echo "127.0.0.1:$port" >"$dir/$1/address"
    start "$1" "$python" "$tests/lib/proxy.py" "$port" "$(zookeeper_address "${2:-$server}")" "$dir/$1"
    wait_until "$deadline" test -e "$dir/$1/ready"
}

# proxied LINK...: the URL of the store through these links.
proxied() {
    local link servers=""
    for link; do
        servers+=${servers:+,}$(<"$dir/$link/address")
    done
    echo "${store%%://*}://$servers/dlockfs"
}

cut_link() {
    touch "$dir/$1/cut"
}

join_link() {
    rm -f "$dir/$1/cut"
}
