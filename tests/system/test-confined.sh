#!/bin/bash
# A daemon of root, each of its threads, its guard and the program that goes on in its process have the capabilities that they need,
# no_new_privs, and the filter of system calls, once each, also with 1,000 locks held. Only they: a daemon of a user has no filter.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

requires test "$(id -u)" -eq 0
readelf --dynamic "$dlockfs" | finds libseccomp || skip "built without libseccomp"

start_zookeeper
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
start_dlockfs A --session-timeout 30s

# What is left: CAP_DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL, LINUX_IMMUTABLE, IPC_LOCK, SYS_PTRACE, SYS_ADMIN, SYS_NICE, RESOURCE.
kept=0
for number in 1 2 3 5 9 14 19 21 23 24; do
    kept=$((kept | 1 << number))
done

# confined FOLDER: of a process or thread in /proc.
confined() {
    local key value filters
    while read -r key value; do
        case $key in
            CapInh: | CapAmb:) [ $((16#$value)) -eq 0 ] || fail "$1: $key $value" ;;
            CapPrm: | CapEff: | CapBnd:) [ $((16#$value & ~kept)) -eq 0 ] || fail "$1: $key $value" ;;
            NoNewPrivs:) [ "$value" -eq 1 ] || fail "$1: may get rights" ;;
            Seccomp:) [ "$value" -eq 2 ] || fail "$1: no filter" ;;
            Seccomp_filters:) filters=$value ;;
        esac
    done <"$1/status"
    # The test's own may have some, too.
    expect_equal "filters of $1" $((outside + 2)) "${filters:-$((outside + 2))}"
}
outside=$(sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/self/status)
outside=${outside:-0}

connected() {
    grep -q '^session=connected' "$dir/A/.dlockfs/status"
}

all_confined() {
    local thread guard threads=0
    wait_until "$deadline" connected
    for thread in "/proc/$(pid A)/task/"*; do
        confined "$thread"
        threads=$((threads + 1))
    done
    [ "$threads" -ge 3 ] || fail "only $threads threads: ZooKeeper's library has two"
    for guard in $(guards_of A); do
        confined "/proc/$guard"
        threads=0
    done
    [ "$threads" -eq 0 ] || fail "no guard"
}
all_confined

mkdir "$dir/A/many"
start holder "$python" -c '
import fcntl, sys, time
files = [open(f"{sys.argv[1]}/{number}", "w") for number in range(1000)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1e6)' "$dir/A/many"
expect holder held
for ((restarts = 1; restarts <= 3; restarts++)); do
    send_signal A USR2
    wait_until "$deadline" eval "[ \"\$(grep -c ' goes on with version ' '$dir/A.log')\" -eq $restarts ]"
    all_confined
done
for number in 0 500 999; do
    expect_status 1 flock -n "$dir/A/many/$number" true
done

# Another guard, which is started by a daemon that is confined.
for guard in $(guards_of A); do
    kill -KILL "$guard"
done
another_guard() {
    local now
    now=$(guards_of A)
    [ -n "$now" ] && [ "$now" != "$guard" ]
}
wait_until "$deadline" another_guard
all_confined
send_signal holder TERM
expect_status 143 finish holder
stop_dlockfs A
