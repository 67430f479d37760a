# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what functions.sh sets, and reads
# Locks whose numbers come to an end. Sourced after functions.sh.

requires command -v javac
numbers_jar=/usr/share/java/zookeeper.jar
late=1879048192 # as ORDER_LATE in stores/zookeeper
# Else the server may take the containers away before anybody uses them.
zookeeper_options=(-Dznode.container.checkIntervalMs=3600000)

# craft PATH=NUMBER...: containers whose next claims get these numbers. The server is restarted.
craft() {
    mkdir -p "$dir/java"
    javac -proc:none -implicit:none -d "$dir/java" -cp "$numbers_jar:/usr/share/java/zookeeper-jute.jar" \
        "$tests/system/stores/zookeeper/Numbers.java" >"$dir/javac.out" 2>&1 || fail "Numbers.java: $(head -n 1 "$dir/javac.out")"
    stop_zookeeper
    java -cp "$dir/java:$numbers_jar" Numbers "$dir/zk/data" "$@" >"$dir/numbers.out" 2>&1 ||
        fail "Numbers: $(tail -n 3 "$dir/numbers.out")"
    start_zookeeper
}
