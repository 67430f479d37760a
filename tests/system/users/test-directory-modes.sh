#!/bin/bash
# The modes of directories in which a stranger cannot make others wait in the kernel (etc/doc/access.md): a stranger lets a write, or
# the reading of a directory, stall on a page of a file system that does not answer, and removes the file. In a directory of mode
# 0777 that holds others up, or this test would show nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

stranger=12345 group=54321
requires command -v setpriv
requires setpriv "--reuid=$stranger" "--regid=$stranger" --clear-groups -- true

cat >"$dir/stall.py" <<'PYTHON'
"""stall.py PAGE FILE: writes that page to the file; stall.py PAGE DIRECTORY/: reads the directory into that page."""
import ctypes, errno, mmap, os, sys, time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, ctypes.c_size_t(4096), 3, mmap.MAP_PRIVATE, os.open(sys.argv[1], os.O_RDONLY), ctypes.c_long(0))
path = sys.argv[2]
try:
    fd = os.open(path, os.O_RDONLY if path.endswith("/") else os.O_RDWR | os.O_CREAT, 0o666)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
    time.sleep(3600)
print("open", flush=True)
if path.endswith("/"):
    libc.getdents64(fd, ctypes.c_void_p(page), ctypes.c_size_t(4096))
else:
    libc.write(fd, ctypes.c_void_p(page), ctypes.c_size_t(100))
PYTHON


stalls() {
    grep -q asked "$dir/server.out"
}

in_unlink() {
    grep -qs vfs_unlink "/proc/$(pid unlinks)/stack"
}

# after KIND MODE: does that in a directory of that mode, as far as the stranger may; root then makes a name there.
after() {
    local kind=$1 folder=$dir/A/$1$2 target
    mkdir "$folder"
    chgrp "$group" "$folder"
    chmod "$2" "$folder"
    target=$folder/own
    [ "$kind" = write ] || target=$folder/
    start server "$build/tests/system/stalling_mount" "$dir/stalling"
    expect server mounted
    start stalling setpriv "--reuid=$stranger" "--regid=$stranger" --clear-groups -- "$python" "$dir/stall.py" "$dir/stalling/page" "$target"
    wait_until "$deadline" grep -q '^open$\|^EACCES$' "$dir/stalling.out"
    if grep -qx open "$dir/stalling.out"; then
        wait_until "$deadline" stalls
        if [ "$kind" = write ]; then
            start unlinks setpriv "--reuid=$stranger" "--regid=$stranger" --clear-groups -- rm -f "$target"
            wait_until "$deadline" in_unlink
        fi
    fi
    start makes flock -n "$folder/name" echo made
}

# Ends it all, and with it every wait.
go_on() {
    release server
    umount -l "$dir/stalling"
    finish makes
    for name in unlinks stalling; do
        [ ! -e "$dir/pids/$name" ] || release "$name"
        rm -f "$dir/pids/$name" "$dir/$name.out"
    done
}

mkdir "$dir/stalling"
start_dlockfs A
for kind in write read; do
    after "$kind" 0777
    in_open() {
        grep -qs path_openat "/proc/$(pid makes)/stack"
    }
    wait_until "$deadline" in_open
    [ ! -s "$dir/makes.out" ] || fail "$kind: a directory of mode 0777 holds nobody up"
    go_on
    for mode in 0711 0710 0770; do
        after "$kind" "$mode"
        wait_until "$deadline" grep -qx made "$dir/makes.out"
        expect_equal "$kind in a directory of mode $mode" EACCES "$(<"$dir/stalling.out")"
        go_on
    done
done
# Who may not list names, may make and remove them.
after read 0733
wait_until "$deadline" grep -qx made "$dir/makes.out"
go_on
