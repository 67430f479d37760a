#!/bin/bash
# Record locks have limits for a process and for a file, beyond which they give ENOLCK, and end where it is over; a thousand
# ranges of one process cost few claims; bad arguments give EINVAL and EBADF.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A -o process_ranges=5,file_ranges=8
start_dlockfs B
start_dlockfs L --store local: -o process_ranges=5,file_ranges=8

results() {
    paste -sd, "$dir/$1.out"
}

for host in A L; do
    # Five ranges of a process, whatever file they are in. What makes them fewer is never refused.
    call process "$dir/$host/process" open w:0-0 w:2-2 r:4-4 w:6-6 file="$dir/$host/process2" open w:0-9 \
        w-nb:20-20 r:30-30 u:5-5 w-nb:0-9 swap w-nb:10-10 u:2-2 w-nb:10-10 w-nb:12-12 w-nb:7-10 w-nb:12-12 \
        u:0- swap w-nb:50-50 hold
    expect process "w-nb:50-50 ok"
    expect_equal "limit of a process on $host" "open ok,w:0-0 ok,w:2-2 ok,r:4-4 ok,w:6-6 ok,file ok,open ok,w:0-9 ok,\
w-nb:20-20 ENOLCK,r:30-30 ENOLCK,u:5-5 ok,w-nb:0-9 ok,swap ok,w-nb:10-10 ENOLCK,u:2-2 ok,w-nb:10-10 ok,w-nb:12-12 ENOLCK,\
w-nb:7-10 ok,w-nb:12-12 ok,u:0- ok,swap ok,w-nb:50-50 ok" "$(results process | sed 's/,hold.*//')"
    release process

    # To release or convert parts makes more ranges, too: by releasing, up to twice as many.
    call split "$dir/$host/split" open w:0- r:2-2 r:4-4 r:6-6 u:8-8 u:10-10 u:12-12 u:14-14 u:16-16 u:18-18 r:20-20 u:0- r:0-0
    finish split
    expect_equal "limit of splitting on $host" "open ok,w:0- ok,r:2-2 ok,r:4-4 ok,r:6-6 ENOLCK,u:8-8 ok,u:10-10 ok,u:12-12 ok,\
u:14-14 ok,u:16-16 ok,u:18-18 ENOLCK,r:20-20 ENOLCK,u:0- ok,r:0-0 ok" "$(results split)"

    # Eight of a file, of all processes of the host; another file is not concerned.
    call first "$dir/$host/file" open w:0-0 w:2-2 w:4-4 w:6-6 w:8-8 await="$dir/go" u:0-0 u:2-2 hold
    expect first "w:8-8 ok"
    call second "$dir/$host/file" open w:10-10 r:12-12 w:14-14 w-nb:16-16 w:18-18 file="$dir/$host/file2" open w:0-0 \
        await="$dir/freed" close w-nb:16-16 w-nb:18-18 w-nb:20-20 hold
    expect second "w:0-0 ok"
    go go
    expect first "u:2-2 ok"
    go freed
    expect second "w-nb:20-20 ENOLCK"
    expect_equal "limit of a file on $host" "open ok,w:10-10 ok,r:12-12 ok,w:14-14 ok,w-nb:16-16 ENOLCK,w:18-18 ENOLCK,file ok,\
open ok,w:0-0 ok,await ok,close ok,w-nb:16-16 ok,w-nb:18-18 ok,w-nb:20-20 ENOLCK" "$(results second | sed 's/,hold.*//')"
    release first second
    rm "$dir/go" "$dir/freed"

    # Arguments.
    call bad "$dir/$host/bad" open w-nb:-1+1 w-nb:5+-6 w-nb:5+-5 u:0- w-nb:0+1@9 get-w:-5+2 w-nb:-1+1@cur seek=5 w-nb:-1+1@cur \
        w-nb:9223372036854775807+2 w-nb:9223372036854775807+0 get-r:9223372036854775807+1 open-ro w-nb:0-0 r-nb:0-0 \
        ofd-w-nb:50-50 lockf=1 close append r-nb:0-0 w-nb:0-0 ofd-get-w:9-9
    finish bad
    expect_equal "arguments on $host" "open ok,w-nb:-1+1 EINVAL,w-nb:5+-6 EINVAL,w-nb:5+-5 ok,u:0- ok,w-nb:0+1@9 EINVAL,\
get-w:-5+2 EINVAL,w-nb:-1+1@cur EINVAL,seek ok,w-nb:-1+1@cur ok,w-nb:9223372036854775807+2 EOVERFLOW,\
w-nb:9223372036854775807+0 ok,get-r:9223372036854775807+1 free,open-ro ok,w-nb:0-0 EBADF,r-nb:0-0 ok,ofd-w-nb:50-50 EBADF,\
lockf EBADF,close ok,append ok,r-nb:0-0 EBADF,w-nb:0-0 ok,ofd-get-w:9-9 free" "$(results bad)"
done

# A thousand ranges, every other byte; another host is kept out of each and may have what is between them.
cat >"$dir/thousand.py" <<'END'
import fcntl, os, sys, time
file, number, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
def lock(start, kind, length=1):
    fcntl.lockf(fd, kind, length, start)
def wait(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.01)
begin = time.monotonic()
for start in range(number):
    lock(2 * start, fcntl.LOCK_EX if start % 3 else fcntl.LOCK_SH)
print(f"took {time.monotonic() - begin:.2f} s", flush=True)
print("held", flush=True)
wait("half")
for start in range(number // 2):
    lock(2 * start, fcntl.LOCK_UN)
print("half", flush=True)
wait("all")
lock(0, fcntl.LOCK_UN, 0)
print("released", flush=True)
wait("end")
END
cat >"$dir/try.py" <<'END'
import fcntl, os, sys
file, begin, end, step, waits = sys.argv[1], *map(int, sys.argv[2:])
fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
got = 0
for start in range(begin, end, step):
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB), 1, start)
        got += 1
        fcntl.lockf(fd, fcntl.LOCK_UN, 1, start)
    except BlockingIOError:
        pass
print(got)
END
try() {
    timeout "$deadline" "$python" "$dir/try.py" "$@"
}
start thousand "$python" "$dir/thousand.py" "$dir/B/thousand" 1000 "$dir"
expect thousand held
claims=$(zookeeper claims /dlockfs/thousand | wc -l)
echo "1,000 ranges: $claims claims, $(head -n 1 "$dir/thousand.out")"
[ "$claims" -le 20 ] || fail "1,000 ranges cost $claims claims"
expect_equal "got of what is held" 0 "$(try "$dir/A/thousand" 0 2000 2 0)"
expect_equal "got of what is between" 100 "$(try "$dir/A/thousand" 1 201 2 1)"
go half
expect thousand half
expect_equal "got of what was released" 100 "$(try "$dir/A/thousand" 0 200 2 1)"
expect_equal "got of what is still held" 0 "$(try "$dir/A/thousand" 1000 2000 2 0)"
go all
expect thousand released
expect_equal "got of everything" 200 "$(try "$dir/A/thousand" 0 2000 10 1)"
wait_claims thousand 0
go end
finish thousand
