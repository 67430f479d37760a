#!/bin/bash
# A lock that several may hold at once: how often clients on three hosts get it in some seconds, how many requests to
# ZooKeeper each time takes, and the same for kazoo's Semaphore and Curator's InterProcessSemaphoreV2 in as many processes
# with a connection each. In turns, and the median of some.
#
#     tests/bench/slots.sh [SLOTS [CLIENTS [SECONDS [TURNS]]]]      (8, 64, 5, 3)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

slots=${1:-8}
clients=${2:-64}

jars=/usr/share/java
classpath=$dir/java:$(printf "$jars/%s.jar:" curator-recipes curator-framework curator-client zookeeper zookeeper-jute \
    zookeeper-recipes-lock guava slf4j-api slf4j-nop)
mkdir "$dir/java"
javac -proc:none -implicit:none -d "$dir/java" -cp "$classpath" "$tests/Connections.java" "$tests/bench/JavaLeases.java"

printf '[locks]\nslots = %s\n' "$slots" >"$dir/ini"
start_zookeeper
for host in A B C; do
    start_dlockfs "$host" --config "$dir/ini"
done
"$python" "$(dirname "$0")/slots.py" "$(zookeeper_address)" "$slots" "$clients" "${3:-5}" "${4:-3}" \
    "$classpath" "$dir"/{A,B,C}/lock
