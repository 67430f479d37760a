#!/bin/bash
# What the processes of a daemon of root may do, by /proc: as the user of the configuration the daemon, in each of its threads, is
# that user without any capability, and only the warden, the guard and the writer are root; as root it has the capabilities that it
# needs. All have no_new_privs, and the filter of system calls, once each. So do the programs that go on, with 1,000 locks held, and
# a guard that is started later. Signals, the reload of a file of root alone and the end of the mount work all the same.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires test "$(id -u)" -eq 0
readelf --dynamic "$dlockfs" | finds libseccomp || skip "built without libseccomp"

start_zookeeper
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
other=$(id -u daemon)
(umask 077 && printf '%s\n' '[mount]' 'user = daemon' 'directories = spool' '[locks "told"]' 'on_lost = SIGTERM' \
    '[locks "spool"]' 'style = file' 'on_revoke = SIGTERM' >"$dir/user.ini")
printf '%s\n' '[mount]' 'user = root' >"$dir/root.ini"

# What root keeps: CAP_DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL, LINUX_IMMUTABLE, IPC_LOCK, SYS_PTRACE, SYS_ADMIN, SYS_NICE,
# RESOURCE.
kept=0
for number in 1 2 3 5 9 14 19 21 23 24; do
    kept=$((kept | 1 << number))
done
outside=$(sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/self/status) # the test's own
outside=${outside:-0}

# confined FOLDER USER CAPABILITIES: of a process or thread in /proc.
confined() {
    local key value real filters=$((outside + 2))
    while read -r key value; do
        case $key in
            Uid: | Gid:)
                real=${value%%[[:space:]]*}
                [ "$key" = Gid: ] || expect_equal "user of $1" "$2" "$real"
                expect_equal "$key of $1" "$(printf '%s\t%s\t%s\t%s' "$real" "$real" "$real" "$real")" "$value"
                ;;
            CapInh: | CapAmb:) [ $((16#$value)) -eq 0 ] || fail "$1: $key $value" ;;
            CapPrm: | CapEff: | CapBnd:) [ $((16#$value & ~$3)) -eq 0 ] || fail "$1: $key $value" ;;
            NoNewPrivs:) [ "$value" -eq 1 ] || fail "$1: may get rights" ;;
            Seccomp:) [ "$value" -eq 2 ] || fail "$1: no filter" ;;
            Seccomp_filters:) filters=$value ;;
        esac
    done <"$1/status"
    expect_equal "filters of $1" $((outside + 2)) "$filters"
}

connected() {
    grep -q '^session=connected' "$dir/$1/.dlockfs/status"
}

children_of() {
    helpers_of "$1" 'warden|guard|writer'
}

# all_confined HOST USER CAPABILITIES CHILDREN
all_confined() {
    local process count=0
    wait_until "$deadline" connected "$1"
    for process in "/proc/$(pid "$1")/task/"*; do
        confined "$process" "$2" "$3"
        count=$((count + 1))
    done
    [ "$count" -ge 3 ] || fail "only $count threads: ZooKeeper's library has two"
    expect_equal "what the status says" "uid=$2 call_filter=yes" \
        "$(grep -E '^(uid|call_filter)=' "$dir/$1/.dlockfs/status" | paste -sd' ')"
    has_children() {
        [ "$(children_of "$1" | wc -l)" -eq "$2" ]
    }
    wait_until "$deadline" has_children "$1" "$4"
    for process in $(children_of "$1"); do
        confined "/proc/$process" 0 "$kept"
    done
}

restarted() {
    [ "$(grep -c ' goes on with version ' "$dir/$1.log")" -eq "$2" ]
}

# try HOST USER CAPABILITIES CHILDREN
try() {
    local guard restarts
    all_confined "$@"
    mkdir "$dir/$1/many"
    start "holder-$1" "$python" -c '
import fcntl, sys, time
files = [open(f"{sys.argv[1]}/{number}", "w") for number in range(1000)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1e6)' "$dir/$1/many"
    expect "holder-$1" held
    for ((restarts = 1; restarts <= 3; restarts++)); do
        send_signal "$1" USR2
        wait_until "$deadline" restarted "$1" "$restarts"
        all_confined "$@"
    done
    for number in 0 500 999; do
        expect_status 1 flock -n "$dir/$1/many/$number" true
    done

    for guard in $(guards_of "$1"); do
        kill -KILL "$guard"
    done
    another_guard() {
        local now
        now=$(guards_of "$1")
        [ -n "$now" ] && [ "$now" != "$guard" ]
    }
    wait_until "$deadline" another_guard "$1"
    all_confined "$@"
    release "holder-$1"
}

start_dlockfs root --session-timeout 30s --config "$dir/root.ini"
try root 0 "$kept" 2
# Who goes on after root has given up that it may change its user stays root, and keeps the locks.
printf '%s\n' '[mount]' 'user = daemon' >"$dir/root.ini"
send_signal root USR2
wait_until "$deadline" restarted root 4
all_confined root 0 "$kept" 2
grep -q 'cannot go on as user daemon, without CAP_SETUID and CAP_SETGID: goes on as root' "$dir/root.log" ||
    fail "$(tail -n 1 "$dir/root.log")"
stop_dlockfs root

start_dlockfs user --session-timeout 30s --config "$dir/user.ini"
try user "$other" 0 3
expect_equal "the owner of the mount" 0 "$(stat -c %u "$dir/user")"
# Of a process of another user that holds.
start told setpriv --reuid=65534 --regid=65534 --clear-groups "$python" -c '
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1e6)' "$dir/user/told"
expect told held
"$dlockctl" --mount "$dir/user" break told --yes
expect_status 143 finish told
# Of one that has made a file, and has nothing open.
start made setpriv --reuid=65534 --regid=65534 --clear-groups "$python" -c '
import os, sys, time
os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
print("made", flush=True)
time.sleep(1e6)' "$dir/user/spool/made"
expect made made
"$dlockctl" --mount "$dir/user" revoke spool/made
expect_status 143 finish made
printf '%s\n' '[locks]' 'text_limit = 3' >>"$dir/user.ini"
send_signal user HUP
wait_until "$deadline" grep -q 'has been read anew' "$dir/user.log"
refused "$python" -c 'import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b"four")' "$dir/user/short" 2>/dev/null
# The warden ends with the daemon, and that unmounts.
stop_dlockfs user
wait_until "$deadline" eval "[ -z \"\$(children_of user)\" ]"

# With a user that is not there a daemon does not start.
(umask 077 && printf '%s\n' '[mount]' 'user = nobody-of-that-name' >"$dir/none.ini")
mkdir "$dir/none"
refused "$dlockfs" --foreground --store local: --config "$dir/none.ini" "$dir/none" >"$dir/none.out" 2>&1
grep -q 'user: no user "nobody-of-that-name" on this host, expected one, or root' "$dir/none.out" || fail "$(<"$dir/none.out")"
not_mounted "$dir/none"
