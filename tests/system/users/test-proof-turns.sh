#!/bin/bash
# fsync and the ioctl for the token, of which one user asks many: they count as calls that wait, whether their callers still do
# or not, and another user's question goes to the servers after a few of them.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v setpriv
asker=12345
requires setpriv "--reuid=$asker" "--regid=$asker" --clear-groups -- true

cat >"$dir/asks.py" <<'PYTHON'
"""asks.py MOUNT NAME NUMBER GO: locks so many files, says "held", and once the file GO is there asks about each, in a thread of
its own: a quarter of them by fsync. Prints the answers: the token, "ok", or an error."""
import errno, fcntl, os, resource, struct, sys, threading, time

DLOCKFS_IOC_TOKEN = 0x8008DF01  # fs/dlockfs.h
mount, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
files = [os.open(f"{mount}/{name}{each}", os.O_RDWR | os.O_CREAT, 0o666) for each in range(number)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
while not os.path.exists(sys.argv[4]):
    time.sleep(0.01)


def ask(number, file):
    try:
        word = "ok"
        if number % 4 == 3:
            os.fsync(file)
        else:
            word = struct.unpack("Q", fcntl.ioctl(file, DLOCKFS_IOC_TOKEN, bytes(8)))[0]
    except OSError as error:
        word = errno.errorcode[error.errno]
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(files)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("all", flush=True)
time.sleep(3600)
PYTHON

has() { # USER COUNTS
    grep -q "^uid=$1 $2 " "$dir/A/.dlockfs/users"
}

# asks NAME USER NUMBER: begins to; "go NAME" has it ask.
asks() {
    start "$1" setpriv "--reuid=$2" "--regid=$2" --clear-groups -- "$python" "$dir/asks.py" "$dir/A" "$1" "$3" "$dir/$1"
    expect "$1" held
}

start_zookeeper
start_dlockfs A --session-timeout 60s -o user_waiters=200
asks many "$asker" 300
asks one 0 1
pause zk
go many
wait_until "$deadline" has "$asker" "waiters=200"
refused() {
    [ "$(grep -c ENOLCK "$dir/many.out")" -eq 100 ]
}
wait_until "$deadline" refused
go one
wait_until "$deadline" has 0 "waiters=1"
resume zk
expect one all
expect many all
expect_equal "refused" 100 "$(grep -cx ENOLCK "$dir/many.out")"
expect_equal "answers" 200 "$(grep -cx '[0-9]*\|ok' "$dir/many.out")"
# A token is the number of the transaction at the servers: so they tell the order.
token=$(grep -x '[0-9]*' "$dir/one.out")
tokens=$(grep -cx '[0-9]*' "$dir/many.out")
before=$(grep -x '[0-9]*' "$dir/many.out" | awk -v token="$token" '$1 < token' | wc -l)
[[ $before -le 40 && $tokens -ge 100 ]] || fail "$before of $tokens were asked before that of another user"
wait_until "$deadline" has "$asker" "waiters=0"

# One whose caller was interrupted is under way until it is answered.
call interrupted "$dir/A/interrupted" open ex await="$dir/fsync" catch=SIGUSR1 fsync hold
expect interrupted "ex ok"
pause zk
go fsync
wait_until "$deadline" has 0 "waiters=1"
send_signal interrupted USR1
expect interrupted "fsync EINTR"
has 0 "waiters=1"
resume zk
wait_until "$deadline" has 0 "waiters=0"
release interrupted many one
