#!/bin/bash
# The mount behaves as a directory for locks: directories, listing, attributes and unlink work, what locks do not need is refused
# with EPERM, and it looks like any mount.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_dlockfs A
cd "$dir/A"

mkdir folder folder/deeper
expect_status 1 mkdir folder 2>"$dir/err"
grep -qi 'file exists' "$dir/err"
exec 8>folder/job 9>folder/deeper/job
expect_equal "find" "./folder ./folder/deeper ./folder/deeper/job ./folder/job" \
    "$(find . -path ./.dlockfs -prune -o -mindepth 1 -print | sort | paste -sd' ')"
refused rmdir folder 2>"$dir/err"
grep -qi 'not empty' "$dir/err"
refused rm folder 2>"$dir/err"
refused rmdir folder/job 2>"$dir/err"
grep -qi 'not a directory' "$dir/err"
expect_equal "types" "regular empty file directory" "$(stat -c %F folder/job folder | paste -sd' ')"
expect_equal "one inode for all handles" "$(stat -c %i folder/job)" "$(stat -L -c %i /proc/self/fd/8)"
rm folder/job folder/deeper/job
expect_status 1 test -e folder/job
exec 8>&- 9>&-
rmdir folder/deeper folder
expect_status 1 test -e folder
expect_status 1 rm nothing 2>"$dir/err"
grep -qi 'no such file' "$dir/err"
expect_status 1 rmdir nothing 2>"$dir/err"

# Attributes.
exec 9>job
chmod 640 job
expect_equal "mode" 640 "$(stat -c %a job)"
touch -d '2020-02-02 02:02:02' job
expect_equal "time" "2020-02-02 02:02:02" "$(stat -c %y job | cut -d. -f1)"
chown 1234:2345 job
expect_equal "owner" 1234:2345 "$(stat -c %u:%g job)"
expect_equal "links" 1 "$(stat -c %h job)"
mkdir attributes
chmod 700 attributes
expect_equal "mode of a directory" 700 "$(stat -c %a attributes)"

# Refused.
eperm() {
    refused "$@" 2>"$dir/err"
    grep -qi 'not permitted' "$dir/err" || fail "not EPERM: $*: $(<"$dir/err")"
}
eperm ln job link
eperm ln -s job symlink
eperm "$python" -c 'import os; os.rename("job", "moved")'
eperm "$python" -c 'import os; os.rename("attributes", "moved")'
eperm mknod device c 1 3
eperm mknod fifo p
expect_status 1 test -e moved
test -e job
rmdir attributes

# Record locks and flock exclude one another, though not through the same handle.
call records "$dir/A/job" open w-nb:0-9 ofd-r-nb:20-29 get-w:0- lockf=1 ex-nb hold
expect records "ex-nb ok"
call other "$dir/A/job" open get-w:5-5 w-nb:9-9 ofd-w-nb:20-20 sh-nb tlock=1
finish other
expect_equal "record locks" "open ok,w-nb:0-9 ok,ofd-r-nb:20-29 ok,get-w:0- r 20-29,lockf ok,ex-nb ok" \
    "$(sed 's/^\(get.*\) -\{0,1\}[0-9]*$/\1/' "$dir/records.out" | paste -sd,)"
expect_equal "record locks of others" "open ok,get-w:5-5 w,w-nb:9-9 EAGAIN,ofd-w-nb:20-20 EAGAIN,sh-nb EAGAIN,tlock EAGAIN" \
    "$(sed 's/^\(get-w:5-5 w\) .* '"$(pid records)"'$/\1/' "$dir/other.out" | paste -sd,)"
release records

# As a file system.
grep -q " $dir/A fuse.dlockfs " /proc/self/mounts
stat -f "$dir/A" >"$dir/stat.out"
df "$dir/A" >"$dir/df.out"
expect_equal "the share of inodes" - "$(df --output=ipcent "$dir/A" | tail -n 1 | tr -d ' ')"
# The same inode after the name was removed and made again while a handle keeps it in use; removal shows in nlink or not at all.
rm job
exec 8>job
expect_equal "inode of the same name" "$(stat -L -c %i /proc/self/fd/9)" "$(stat -L -c %i /proc/self/fd/8)"
flock -n 8
expect_status 1 flock -n 9

# A listing in several parts: more names than fit one answer.
exec 8>&- 9>&-
mkdir many
"$python" - many <<'END'
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
names = [f"{number:04d}-" + "n" * 100 for number in range(2000)]
files = [os.open(f"{sys.argv[1]}/{name}", os.O_RDWR | os.O_CREAT, 0o666) for name in names]
assert sorted(os.listdir(sys.argv[1])) == names
for name in names:
    os.unlink(f"{sys.argv[1]}/{name}")
assert os.listdir(sys.argv[1]) == []
# A list is taken when it is read, and anew from its beginning.
folder = os.open(sys.argv[1], os.O_RDONLY)
for number in range(3):
    open(f"{sys.argv[1]}/{number}", "x").close()
    assert len(os.listdir(folder)) == number + 1
for number in range(3):
    os.unlink(f"{sys.argv[1]}/{number}")
END
rmdir many
cd "$dir"
