#!/bin/bash
# Servers by their IPv6 addresses, in all forms, alone and among others: the stores connect, and what people read has the brackets that they
# wrote.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires grep -q '^0*1 ' /proc/net/if_inet6

# locks HOST ADDRESS: by that address of the store the lock can be had, and the status has it in its form.
locks() {
    local written
    start_dlockfs "$1" --session-timeout 10s --store "${store%%:*}://$2/dlockfs"
    comes_free "$dir/$1/job"
    written=${2//[/\\[}
    grep -q "://${written//]/\\]}/dlockfs connected to \[[0-9:]*1\]:$port," "$dir/$1/.dlockfs/status" ||
        fail "the status of $1: $(<"$dir/$1/.dlockfs/status")"
    stop_dlockfs "$1"
}

# try_forms: of the address [::1]:$port.
try_forms() {
    local kind=${store%%:*} dead
    dead=$(free_port)
    locks "$kind-short" "[::1]:$port"
    locks "$kind-long" "[0:0:0:0:0:0:0:1]:$port"
    locks "$kind-first" "[::1]:$port,127.0.0.1:$dead"
    locks "$kind-last" "127.0.0.1:$dead,[::1]:$dead,[::1]:$port"
    # A server that is not there is told of by the address that was written.
    start_dlockfs "$kind-dead" --session-timeout 10s --store "$kind://[::1]:$dead/dlockfs"
    wait_until "$deadline" grep -q "$1" "$dir/$kind-dead.log"
    stop_dlockfs "$kind-dead"
}

requires type -P etcd
etcd_configure etcd
port=$(<"$dir/etcd/port")
etcd_options=(--listen-client-urls "http://127.0.0.1:$port,http://[::1]:$port")
start_etcd
try_forms "warning: etcd: \[::1\]:[0-9]*: Connection refused"
kill_etcd

port=$(free_port)
zookeeper_configure zk "$port" clientPortAddress=::1
zookeeper_launch zk
listens() {
    # shellcheck disable=SC2016
    timeout 5 bash -c 'exec 3<>"/dev/tcp/::1/$1" && echo srvr >&3 && grep -q ^Mode: <&3' - "$port" 2>/dev/null
}
wait_until "$deadline" listens
store="zookeeper://[::1]:$port/dlockfs"
try_forms "warning: cannot reach ZooKeeper at \[::1\]:[0-9]* yet"
