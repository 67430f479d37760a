# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# Clients of ZooKeeper that are not dlockfs: Curator and ZooKeeper's own recipe (OtherClients.java), kazoo and a client by the textbook
# (other_clients.py). Sourced after functions.sh.

jars=/usr/share/java
classpath=$dir/java:$(printf "$jars/%s.jar:" curator-recipes curator-framework curator-client zookeeper zookeeper-jute \
    zookeeper-recipes-lock guava slf4j-api slf4j-nop)
clients_ms=8000 # their session timeout
orders=0        # so many were given
last=           # the id of the latest one

# start_client NAME COMMAND...: with its orders on the descriptor client_NAME.
start_client() {
    local name=$1 fd
    shift
    rm -f "$dir/$name.fifo"
    mkfifo "$dir/$name.fifo"
    exec {fd}<>"$dir/$name.fifo"
    printf -v "client_$name" %s "$fd"
    # shellcheck disable=SC2016 # for the shell that is started
    start "$name" sh -c 'fifo=$1 && shift && exec "$@" <"$fifo"' - "$dir/$name.fifo" "$@" "$(zookeeper_address)" $clients_ms
}

start_clients() {
    requires test -e "$jars/curator-recipes.jar"
    requires command -v javac
    if [ ! -e "$dir/java" ]; then
        mkdir "$dir/java"
        javac -proc:none -implicit:none -d "$dir/java" -cp "$classpath" "$tests/Connections.java" \
            "$tests/system/stores/clients/OtherClients.java" >"$dir/javac.out" 2>&1 || fail "OtherClients.java: $(head -n 1 "$dir/javac.out")"
    fi
    start_client java java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -cp "$classpath" OtherClients
    start_client kazoo "$python" -u "$tests/system/stores/clients/other_clients.py"
    expect java ready
    expect kazoo ready
}

more_configuration=() # lines that start_hosts puts behind its own

# start_hosts: two of them, A and B, a server, and the clients. A folder of the mounts for each recipe; in jobs and in pool, the
# two locks of a semaphore.
start_hosts() {
    local host
    start_zookeeper
    cat >"$dir/config" <<'END'
[mount]
directories = curator-rw curator-mutex kazoo curator-any plain jobs pool
[locks "curator-mutex/*"]
recipe = curator-mutex
[locks "kazoo/*"]
recipe = kazoo
[locks "curator-any/*"]
recipe = curator-any
[locks "plain/*"]
recipe = plain
[locks "curator-any/kept"]
keep = 1h
[locks "jobs/*"]
recipe = curator-mutex
[locks "pool/locks"]
recipe = curator-mutex
[locks "pool/leases"]
slots = 2
END
    printf '%s\n' "${more_configuration[@]}" >>"$dir/config"
    for host in A B; do
        start_dlockfs "$host" --config "$dir/config" --session-timeout 10s
    done
    start_clients
}

kill_clients() {
    release java kazoo
    exec {client_java}>&- {client_kazoo}>&-
}

# order_again CLIENT VERB ID ARGUMENT...
order_again() {
    local fd=client_$1
    shift
    echo "$*" >&"${!fd}"
}

# order CLIENT VERB ARGUMENT...: with a new id, in the variable last.
order() {
    local client=$1 verb=$2
    shift 2
    orders=$((orders + 1))
    last=order$orders
    order_again "$client" "$verb" "$last" "$@"
}

# answers ANSWER CLIENT VERB ARGUMENT...: gives an order and waits for that answer.
answers() {
    local answer=$1 client=$2
    shift
    order "$@"
    wait_until "$deadline" grep -q "^$last " "$dir/$client.out"
    said "$client" "$last $answer" || fail "$*: $(grep "^$last " "$dir/$client.out") instead of $answer"
}

# claims LOCK NUMBER: until so many znodes are there.
claims() {
    answers there kazoo wait "/dlockfs/$1" "$2"
}

# claims_of LOCK OURS THEIRS: how many znodes so many claims of the mounts, and of others, are.
claims_of() {
    case $1 in
        curator-any/*) echo $((2 * $2 + $3)) ;;
        *) echo $(($2 + $3)) ;;
    esac
}

comes_free_shared() {
    wait_until "$deadline" flock -n -s "$1" true
}
