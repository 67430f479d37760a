# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# A folder that looks like a mount with queues in it, so that what dlockctl shows is known exactly; sourced after functions.sh.

# claim POSITION STATE MODE AGE REST...: a line of a queue; "now" is fixed by the first of them.
claim() {
    local position=$1 state=$2 mode=$3 age=$4
    shift 4
    echo "position=$position state=$state mode=$mode${*:+ $*} since=$(($(date +%s) - age)) session=0x1000 claim=_c_$position"
}

# make_static_mount: $dir/static with three locks in it.
make_static_mount() {
    local tree=$dir/static/.dlockfs
    mkdir -p "$tree/locks/cron/sub"
    printf '%s\n' version=0.1.0 uid=1 call_filter=yes "store=zookeeper://127.0.0.1:2181/dlockfs" \
        abilities=queue,shared,ranges,stamps,clients session=connected session_timeout_ms=15000 \
        lease_left_ms=8400 locks=3 holders=3 waiters=3 fenced=0 exclusive_open_waits=yes guard=watches,realtime,spared,locked >"$tree/status"
    {
        echo "lock=cron/backup claims=4 holders=1"
        claim 1 held exclusive 100000 kind=flock host=web1 pid=4711 uid=0 command=backup.sh client=dlockfs
        claim 2 waiting exclusive 7300 kind=record ranges=w0-63,r100-199 host=a-very-long-name-of-a-host.example.org \
            pid=4194303 uid=4242424 command=some%20%1B[31mcommand%0A client=dlockfs
        claim 3 waiting shared 61 client=other
        claim 4 waiting exclusive 1 kind=open host=web2 pid=9 uid=0 command=x client=dlockfs
    } >"$tree/locks/cron/backup"
    {
        echo "lock=cron/sub claims=2 holders=2"
        claim 1 held shared 5000 kind=flock host=web1 pid=1 uid=0 command=a client=dlockfs
        claim 2 held shared 50 kind=flock host=web2 pid=2 uid=0 command=b client=dlockfs
    } >"$tree/locks/cron/sub/.queue"
    {
        echo "lock=odd%0Aname%20%5C%FF claims=1 holders=0"
        claim 1 waiting exclusive 100000 kind=flock host=web3 pid=3 uid=0 command=c client=dlockfs
    } >"$tree/locks/$(printf 'odd\nname \\\377')"
    echo "lock=free claims=0 holders=0" >"$tree/locks/free"
    cat "$tree/locks/cron/backup" "$tree/locks/cron/sub/.queue" "$tree/locks/odd"* "$tree/locks/free" >"$tree/queues"
}
