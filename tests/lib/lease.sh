# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what functions.sh sets, and reads
# What the tests of the lease share; sourced after functions.sh. Times are milliseconds of the clock of lease.py.

lease() {
    "$python" "$tests/lib/lease.py" "$@"
}

# keep NAME FILE flock|excl [AT]: a program that takes the lock (not before that time) and, once it has it, asks all the time whether it still has.
keep() {
    start "$1" "$python" -u "$tests/lib/lease.py" hold "${@:2}"
}

# time_of NAME WORD: when the program was "granted" or "fenced"; fails if it was not (yet).
time_of() {
    awk -v "word=$2" '$1 == word { print $NF; found = 1; exit } END { exit !found }' "$dir/$1.out"
}

granted() {
    time_of "$1" granted >/dev/null
}

not_granted() {
    if granted "$1"; then
        fail "$1 got the lock: ${2:-another one holds it}"
    fi
}

fenced() {
    time_of "$1" fenced >/dev/null
}

not_fenced() {
    if fenced "$1"; then
        fail "$1 lost its lock: $(grep fenced "$dir/$1.out")"
    fi
}

# keep_contended: for each kind, holder-KIND on host A has the lock KIND, and rival-KIND on host B waits for it.
keep_contended() {
    local kind
    for kind in flock excl; do
        keep "holder-$kind" "$dir/A/$kind" "$kind"
        wait_until "$deadline" granted "holder-$kind"
        keep "rival-$kind" "$dir/B/$kind" "$kind"
        wait_claims "$kind" 2
    done
}

# fenced_first CUT HOLDER RIVAL: waits until the holder is told with EIO that it lost the lock which the rival gets, and
# fails if a call of its succeeded that began later than the rival's lock. (When it was told may be later: it may not have
# been run meanwhile.)
fenced_first() {
    local fence grant last
    wait_until "$deadline" granted "$3"
    grant=$(time_of "$3" granted)
    wait_until "$deadline" fenced "$2"
    fence=$(time_of "$2" fenced)
    echo "$2, $3: cut to fence $((fence - $1)) ms, cut to grant $((grant - $1)) ms, gap $((grant - fence)) ms"
    last=$(awk '$1 == "fenced" { print $3; exit }' "$dir/$2.out")
    [ "$last" -lt "$grant" ] || violation "two held one lock for $((last - grant)) ms"
    grep -q '^fenced EIO ' "$dir/$2.out" || fail "not EIO: $(grep fenced "$dir/$2.out")"
}

# told_first CUT HOLDER RIVAL: the same, and the holder was told before the rival was granted, though it asked for nothing that it did
# not get meanwhile.
told_first() {
    fenced_first "$@"
    [ "$(time_of "$2" fenced)" -le "$(time_of "$3" granted)" ] || fail "$3 was granted the lock before $2 was told"
}

# never_revived NAME...: what was fenced stays so.
never_revived() {
    local name
    for name; do
        if grep revived "$dir/$name.out"; then
            fail "$name was fenced and later not"
        fi
    done
}

# start_slow_ensemble MILLISECONDS [TICKS]: servers zk1 to zk3 whose tick is half of that session timeout: the longest that they
# allow, and so the worst for leases. They do without one another for so many ticks (5).
start_slow_ensemble() {
    zookeeper_configuration="tickTime=$(($1 / 2))"$'\ninitLimit=10\nsyncLimit='${2:-5}
    start_ensemble 3
    zookeeper_name=zk1
}

linked_tick=2000 # milliseconds

# start_linked_ensemble: servers zk1 to zk3 whose links to one another can be cut: link12, link13, link23. Sets store, as
# start_ensemble. A follower that is cut off goes on serving for 5 ticks: much longer than a session of 2 ticks lives.
#
# Each server's list has its own real ports and, for each other one, those of links. A server that is asked for votes by
# one with a smaller number hangs up and connects by itself, to the address that it was told: the link tells it that of
# the link back.
start_linked_ensemble() {
    local i j lines pair peers=() votes=() links=()
    local -A link_votes # "i j": the port at which i reaches the votes of j
    requires test -e /usr/share/java/zookeeper.jar
    requires command -v java
    for i in 1 2 3; do
        peers[i]=$(free_port)
        votes[i]=$(free_port)
        for j in 1 2 3; do
            link_votes["$i $j"]=$(free_port)
        done
    done
    for i in 1 2 3; do
        lines="tickTime=$linked_tick"$'\ninitLimit=10\nsyncLimit=5\n'
        for j in 1 2 3; do
            if [ "$i" -eq "$j" ]; then
                lines+="server.$j=127.0.0.1:${peers[j]}:${votes[j]}"$'\n'
                continue
            fi
            pair=link$((i < j ? i : j))$((i < j ? j : i))
            mkdir -p "$dir/$pair"
            links+=("$(free_port):${peers[j]}:$pair")
            lines+="server.$j=127.0.0.1:${links[-1]%%:*}:${link_votes["$i $j"]}"$'\n'
            links+=("${link_votes["$i $j"]}:${votes[j]}:$pair:${votes[i]}:${link_votes["$j $i"]}")
        done
        zookeeper_configure "zk$i" "$(free_port)" "$lines"
        echo "$i" >"$dir/zk$i/data/myid"
        touch "$dir/zk$i/started"
    done
    start links "$python" "$tests/lib/links.py" "$dir" "${links[@]}"
    wait_until "$deadline" test -e "$dir/links-ready"
    for i in 1 2 3; do
        zookeeper_launch "zk$i"
    done
    for i in 1 2 3; do
        wait_until "$deadline" zookeeper_serves "zk$i"
    done
    store=zookeeper://$(zookeeper_address zk1),$(zookeeper_address zk2),$(zookeeper_address zk3)/dlockfs
}

# links_of SERVER: the names of its links to the others.
links_of() {
    case $1 in
        zk1) echo link12 link13 ;;
        zk2) echo link12 link23 ;;
        zk3) echo link13 link23 ;;
    esac
}

# zxid SERVER: a number that grows with each transaction.
zxid() {
    # shellcheck disable=SC2016
    timeout "$deadline" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && echo srvr >&3 && cat <&3' - "$(<"$dir/$1/port")" |
        sed -n 's/^Zxid: //p'
}
