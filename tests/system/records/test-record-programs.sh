#!/bin/bash
# Programs that live on record locks work on two and three hosts: ping_pong of ctdb, stress-ng, SQLite, Python's lockf and perl's
# fcntl. Prints the rates.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v ping_pong
requires command -v stress-ng
requires command -v perl
"start_${STORE:-zookeeper}"
for host in A B C; do
    start_dlockfs "$host"
done

# ping_pong: each of N processes locks one byte after the other, of N + 1, and lets go of the one before: it comes only as far
# as the others do. It prints its rate each second. With data, which a host has for itself, only on one host.
rates() { # NAME
    tr '\r' '\n' <"$dir/$1.out" | awk '/locks\/sec/ { print $1 }'
}
rated() { # NAME
    [ "$(rates "$1" | awk '$1 > 0' | wc -l)" -ge 2 ]
}
ping_pong() { # FILE-AND-HOST-NAMES...
    local host names=()
    for host in "$@"; do
        names+=("ping${#names[@]}")
        # shellcheck disable=SC2086
        start "${names[-1]}" stdbuf -o0 ping_pong ${options:-} "$dir/$host/$file" $(($# + 1))
    done
    for name in "${names[@]}"; do
        wait_until "$deadline" rated "$name"
    done
    for name in "${names[@]}"; do
        alive "$name" || fail "ping_pong ended: $(<"$dir/$name.out")"
        if tr '\r' '\n' <"$dir/$name.out" | grep -v 'locks/sec\|^data increment\|^ *$'; then
            fail "ping_pong complains"
        fi
        echo "ping_pong ${options:-} $*: $name $(rates "$name" | tail -n 1) locks/s"
    done
    if [ -n "${options:-}" ]; then
        for name in "${names[@]}"; do
            tr '\r' '\n' <"$dir/$name.out" | grep '^data increment' | tail -n 1 | finds -x "data increment = $#" ||
                fail "$name: $(tr '\r' '\n' <"$dir/$name.out" | grep '^data increment')"
        done
    fi
    release "${names[@]}"
    wait_claims "$file" 0
}
file=ping2
ping_pong A B
file=ping3
ping_pong A B C
file=data
options=-rw
ping_pong C C
options=

# Its own test of a cluster: held on one node, the other is told so, by F_SETLK and by F_GETLK.
start pong sh -c 'sleep infinity | stdbuf -o0 ping_pong -l "$1"' - "$dir/A/pong"
wait_until "$deadline" grep -q '^Holding lock' "$dir/pong.out"
for host in A B; do
    timeout "$deadline" ping_pong -l "$dir/$host/pong" </dev/null >"$dir/pong-$host.out" 2>&1
    grep -qx 'Working POSIX byte range locks' "$dir/pong-$host.out" || fail "ping_pong -l: $(<"$dir/pong-$host.out")"
done
release pong

# stress-ng. Three of these stressors first write a file of up to 1 MiB, in which they then lock ranges that are not read. Here a
# file has up to 4 KiB: what they write beyond that counts as written.
cat >"$dir/enough.c" <<'END2'
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *data, size_t bytes)
{
	long written = syscall(SYS_write, fd, data, bytes);
	return written < 0 && errno == EFBIG ? (ssize_t)bytes : written;
}
END2
cc -shared -fPIC -o "$dir/enough.so" "$dir/enough.c"
mkdir "$dir/A/stress"
LD_PRELOAD=$dir/enough.so timeout "$deadline" stress-ng --flock 2 --lockf 2 --locka 2 --lockofd 2 --temp-path "$dir/A/stress" --timeout 4 \
    --metrics-brief --verify >"$dir/stress.out" 2>&1 || fail "stress-ng: status $?"
if grep -i 'fail\|error' "$dir/stress.out"; then
    fail "stress-ng complains"
fi
awk '$4 ~ /^(flock|lockf|locka|lockofd)$/ && $6 + 0 > 0 { print "stress-ng", $4 ": " $5, "in", $6, "s" }' "$dir/stress.out"
for stressor in flock lockf locka lockofd; do
    awk -v "name=$stressor" '$4 == name && $5 > 10 { found = 1 } END { exit !found }' "$dir/stress.out" ||
        fail "stress-ng: hardly any $stressor"
done

# SQLite: with its own locks on a database that fits in a lock file; and with none of its own, guarded by record locks on the
# mounts of three hosts.
timeout "$deadline" "$python" "$tests/system/records/record_sqlite.py" own "$dir/A/database" 3 40
timeout "$deadline" "$python" "$tests/system/records/record_sqlite.py" guarded "$dir/database" 6 40 "$dir/A/guard" "$dir/B/guard" "$dir/C/guard"

# Counters of Python and perl, each byte 10 of one file, on two hosts.
echo 0 >"$dir/counter"
for host in A B; do
    start "python-$host" "$python" "$tests/lib/counter.py" lockf "$dir/counter" 4 300 "$dir/$host/counter"
    start "perl-$host" perl "$tests/system/records/record_counter.pl" "$dir/$host/counter" "$dir/counter" 100
done
for host in A B; do
    finish "python-$host"
    finish "perl-$host"
done
expect_equal "violation: counter" 800 "$(<"$dir/counter")"
wait_claims counter 0
