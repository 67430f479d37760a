#!/bin/bash
# A daemon of root that has given up nothing, as versions before there was the key `user`, is followed by one that goes on as another
# user: by a live restart, and after kill -9. 1,000 locks are held meanwhile, and some are waited for on both hosts. None is lost or
# free for a moment, each has the token that it had, and who waits gets the lock in its turn.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

preload=$build/tests/system/all_rights.so
requires test -e "$preload"
start_zookeeper
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
other=$(id -u daemon)

# Takes 1,000 locks and says their tokens; then asks for those again each time that its input has a line.
cat >"$dir/holds.py" <<'END'
import fcntl, hashlib, struct, sys
files = [open(f"{sys.argv[1]}/{number}", "w") for number in range(1000)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
while True:
    tokens = [struct.unpack("Q", fcntl.ioctl(file, 0x8008DF01, bytes(8)))[0] for file in files]
    assert len(set(tokens)) == len(tokens), "two locks have one token"
    print("tokens", hashlib.sha256(repr(tokens).encode()).hexdigest(), flush=True)
    if not sys.stdin.readline():
        break
END
# Tries all of them, and says how many are free.
cat >"$dir/tries.py" <<'END'
import fcntl, sys
free = 0
for number in range(1000):
    with open(f"{sys.argv[1]}/{number}", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free += 1
        except BlockingIOError:
            pass
print(free)
END

runs_as() { # HOST UID
    grep -qx "uid=$2" "$dir/$1/.dlockfs/status"
}

said_tokens() {
    [ "$(grep -c '^tokens ' "$dir/holder-$1.out")" -eq "$2" ]
}

waiting() {
    [ "$(sed -n 's/^waiters=//p' "$dir/$1/.dlockfs/status")" -eq "$2" ]
}

# hold_many HOST
hold_many() {
    local number
    mkdir "$dir/$1/many" "$dir/B/many" 2>/dev/null || true
    mkfifo "$dir/ask-$1"
    # shellcheck disable=SC2016
    start "holder-$1" sh -c 'exec "$@" <>"$0"' "$dir/ask-$1" "$python" "$dir/holds.py" "$dir/$1/many"
    wait_until "$deadline" said_tokens "$1" 1
    for number in 0 500 999; do
        hold "waits-B-$number" "$dir/B/many/$number"
        wait_until "$deadline" waiting B $((number / 499 + 1))
        hold "waits-$1-$number" "$dir/$1/many/$number"
        wait_until "$deadline" waiting "$1" $((number / 499 + 1))
    done
}

# all_as_before HOST: after the new daemon has begun.
all_as_before() {
    local number
    wait_until "$deadline" runs_as "$1" "$other"
    expect_equal "locks of $1 that are free for B" 0 "$("$python" "$dir/tries.py" "$dir/B/many")"
    echo again >"$dir/ask-$1"
    wait_until "$deadline" said_tokens "$1" 2
    expect_equal "tokens of $1" 1 "$(sort -u "$dir/holder-$1.out" | wc -l)"
    if ! waiting "$1" 3 || ! waiting B 3; then
        violation "who waits for $1: $(grep -h '^waiters=' "$dir"/?/.dlockfs/status)"
    fi
    if grep 'lost\|giving it up\|expired\|placed late\|beginning anew' "$dir/$1.log" | grep -v 'connection to ZooKeeper'; then
        violation "$1 has lost something"
    fi
    release "holder-$1"
    for number in 0 500 999; do
        expect "waits-B-$number" held
        refused said "waits-$1-$number" held
        release "waits-B-$number"
        expect "waits-$1-$number" held
        release "waits-$1-$number"
    done
}

for host in A C; do
    printf '%s\n' '[mount]' 'user = root' >"$dir/$host.ini"
done
start_dlockfs B --session-timeout 30s

LD_PRELOAD=$preload start_dlockfs A --session-timeout 30s --config "$dir/A.ini"
runs_as A 0
[ $((16#$(sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$(pid A)/status") >> 6 & 3)) -eq 3 ] || fail "A has given something up"
hold_many A
printf '%s\n' '[mount]' 'user = daemon' >"$dir/A.ini"
send_signal A USR2
all_as_before A
stop_dlockfs A

start_kept C --session-timeout 30s --config "$dir/C.ini"
runs_as C 0
hold_many C
printf '%s\n' '[mount]' 'user = daemon' >"$dir/C.ini"
crash C
all_as_before C
stop_kept C
