#!/bin/bash
# An open file that holds by more claims than one transaction of ZooKeeper is to show: five processes with 16 byte ranges
# each. fsync and the token look at all of them: whichever is deleted by hand, both fail with EIO at once, long before a
# heartbeat could tell.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

cat >"$dir/many.py" <<'PYTHON'
"""many.py FILE PREFIX: says what happens, and asks once the file PREFIX.go is there."""
import errno, fcntl, os, sys, time

DLOCKFS_IOC_TOKEN = 0x8008DF01  # fs/dlockfs.h
parent = os.getpid()
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
for process in range(5):
    ready, told = os.pipe()
    if os.fork() == 0:
        os.close(ready)
        for number in range(16):
            fcntl.lockf(fd, fcntl.LOCK_EX, 1, 1000 * process + 10 * number)
        os.write(told, b"!")
        os.close(told)
        while os.getppid() == parent:
            time.sleep(0.05)
        os._exit(0)
    os.close(told)
    if os.read(ready, 1) != b"!":
        sys.exit("a process did not get its locks")


def ask(what, call):
    try:
        call()
        print(what, "ok", flush=True)
    except OSError as error:
        print(what, errno.errorcode[error.errno], flush=True)


def token():
    fcntl.ioctl(fd, DLOCKFS_IOC_TOKEN, bytes(8))


ask("fsync", lambda: os.fsync(fd))
ask("token", token)
print("held", flush=True)
while not os.path.exists(f"{sys.argv[2]}.go"):
    time.sleep(0.01)
if sys.argv[3] == "token":
    ask("then token", token)
else:
    ask("then fsync", lambda: os.fsync(fd))
PYTHON

start_zookeeper
start_dlockfs A --session-timeout 40s # a heartbeat each five seconds

number=0
for what in fsync token; do
    for place in 1 64 65 80; do
        number=$((number + 1))
        lock=many$number
        start "$lock" "$python" "$dir/many.py" "$dir/A/$lock" "$dir/$lock" "$what"
        expect "$lock" held
        expect_equal "before" "fsync ok,token ok" "$(head -n 2 "$dir/$lock.out" | paste -sd,)"
        wait_claims "$lock" 80
        zookeeper delete "/dlockfs/$lock/$(zookeeper claims "/dlockfs/$lock" | sed -n "${place}p")"
        touch "$dir/$lock.go"
        wait_until "$deadline" grep -q '^then' "$dir/$lock.out"
        expect_equal "claim $place of 80 deleted" "then $what EIO" "$(tail -n 1 "$dir/$lock.out")"
        finish "$lock"
    done
done
