#!/bin/bash
# The same faults for dlockfs and for what people use instead: who lets two hold at once, who tells whom, and when.
#
#     tests/faults/run.sh [OPTION...] [CONTENDER...]
#
#     --faults NAME,...   only these columns (see nemesis.py); `mix` is all of them in random order
#     --seeds N           so many histories of each (1)
#     --seed N            from this seed on (1); the same seed is the same plan
#     --rounds N          so many faults in a history (2)
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
contenders=()
options=()
while [ $# -gt 0 ]; do
    case $1 in
        --strict | --promised) options+=("$1") ;;
        --faults | --seeds | --seed | --rounds)
            options+=("$1" "$2")
            shift
            ;;
        --list)
            sed -n 's/^    "\([a-z-]*\)": Contender("\(.*\)", servers.*/\1: \2/p' "$tests/faults/run.py"
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
    packages+=(postgresql python3-psycopg2)
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
status=0
for contender in "${contenders[@]}"; do
    # All that it starts ends with it.
    unshare --net --pid --fork --kill-child --mount-proc -- "$python" "$tests/faults/run.py" --contender "$contender" --dlockfs "$dlockfs" --clock "$stepped_clock" \
        --classpath "$classpath" --folder "$dir" --output "$output" "${options[@]}" || status=$?
done
exit "$status"
