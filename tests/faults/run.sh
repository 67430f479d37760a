#!/bin/bash
# The same faults for dlockfs and for what people use instead: who lets two hold at once, who tells whom, and when.
#
#     tests/faults/run.sh [OPTION...] [CONTENDER...]
#
#     --faults NAME,...   only these columns (see nemesis.py); `mix` is all of them in random order
#     --seeds N           so many histories of each (1)
#     --seed N            from this seed on (1); the same seed is the same plan
#     --rounds N          so many faults in a history (2)
#     --step SECONDS      between two writes of a holder (0.01)
#     --session SECONDS   T, the session timeout (3)
#     --jobs N            so many histories of each contender at a time, and of all contenders at a time
#     --minutes N         goes on with further seeds until then
#     --continue          leaves out what the results have already
#     --promised          no faults that etc/doc/safety.md or etc/doc/redis.md except
#     --strict            ends with 1 if anything was found
#     --list              prints the contenders
#
# Three hosts with two processes each, and the servers, are machines in network namespaces. Each history goes to a file in the
# folder OUTPUT (build/faults), with the results; `tests/faults/check.py FILE` looks at one again, and `tests/faults/table.py FOLDER`
# prints the table. Needs root. Unless contenders are named, installs the packages of all.

if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount --propagation private --net -- "$0" "$@"
fi
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

jars=/usr/share/java
classpath=$dir/java:$(printf "$jars/%s.jar:" curator-recipes curator-framework curator-client zookeeper zookeeper-jute \
    zookeeper-recipes-lock guava slf4j-api slf4j-nop)
output=${OUTPUT:-$build/faults}
stepped_clock=$build/tests/system/stepped_clock
skewed_clock=$build/tests/system/skewed_clock.so
contenders=()
options=()
jobs=
while [ $# -gt 0 ]; do
    case $1 in
        --strict | --promised | --continue) options+=("$1") ;;
        --session)
            export SESSION_S=$2
            shift
            ;;
        --jobs)
            jobs=$2
            shift
            ;;
        --faults | --seeds | --seed | --rounds | --step | --minutes)
            options+=("$1" "$2")
            shift
            ;;
        --list)
            "$python" "$tests/faults/run.py" --list
            exit
            ;;
        -*)
            sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
            exit 2
            ;;
        *) contenders+=("$1") ;;
    esac
    shift
done
if [ ${#contenders[@]} -eq 0 ]; then
    mapfile -t contenders < <("$0" --list | cut -d: -f1)
    # shellcheck source=../bench/packages.sh
    . "$tests/bench/packages.sh"
    packages+=(postgresql python3-psycopg2 strace iptables)
    install_packages
fi

# The machines have no name servers, and programs ask for the names of addresses.
{
    cat /etc/hosts
    for ((number = 1; number < 256; number++)); do
        echo "10.77.$number.2 machine$number"
    done
} >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts

requires test -x "$stepped_clock"
mkdir -p "$output" "$dir/java"
if [[ " ${contenders[*]} " = *" curator "* ]]; then
    javac -d "$dir/java" -cp "$classpath" "$tests/Connections.java" "$tests/faults/CuratorLock.java"
fi

# play CONTENDER PART: all that it starts ends with it.
play() {
    mkdir -p "$dir/$2"
    unshare --net --pid --fork --kill-child --mount-proc -- "$python" "$tests/faults/run.py" --contender "$1" \
        --part "$2" --parts "${jobs:-1}" --dlockfs "$dlockfs" --clock "$stepped_clock" --skew "$skewed_clock" \
        --classpath "$classpath" --folder "$dir/$2" --output "$output" "${options[@]}"
}

status=0
players=()
for contender in "${contenders[@]}"; do
    for ((part = 1; part <= ${jobs:-1}; part++)); do
        if [ -n "$jobs" ]; then
            play "$contender" "$part" &
            players+=($!)
            cleanup_fn pkill -KILL -P $! # unshare minds no other signal
        else
            play "$contender" 1 || status=$?
        fi
    done
done
for player in "${players[@]}"; do
    wait "$player" || status=$?
done
exit "$status"
