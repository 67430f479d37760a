#!/bin/bash
# Calls that would make a name, or give a file another one, are refused where that is a lock file in use, and leave it as it was:
# it is found afterwards, and an exclusive open of it waits.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B

cat >"$dir/refused.py" <<'END'
import ctypes, errno, os, sys
folder = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)

def rename(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")

calls = {
    "rename-onto": lambda name, other: os.rename(other, name),
    "rename-from": lambda name, other: os.rename(name, other),
    "rename-away": lambda name, other: os.rename(name, name + "-new"),
    "rename-noreplace": lambda name, other: rename(other, name, 1),
    "rename-exchange": lambda name, other: rename(other, name, 2),
    "rename-directory": lambda name, other: os.rename(name + "-directory", name),
    "mkdir": lambda name, other: os.mkdir(name),
    "symlink": lambda name, other: os.symlink("target", name),
    "link-onto": lambda name, other: os.link(other, name),
    "link-from": lambda name, other: os.link(name, name + "-new"),
    "mknod": lambda name, other: os.mknod(name),
    "mkfifo": lambda name, other: os.mkfifo(name),
    "rmdir": lambda name, other: os.rmdir(name),
}

def outcome(call, *arguments):
    try:
        result = call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok" if result is None else result

for word, call in calls.items():
    name, other = f"{folder}/{word}", f"{folder}/{word}-other"
    os.mkdir(name + "-directory")
    kept = [os.open(path, os.O_RDWR | os.O_CREAT, 0o666) for path in (name, other)]
    before = [os.fstat(descriptor).st_ino for descriptor in kept]
    result = outcome(call, name, other)
    after = [outcome(lambda: os.stat(path).st_ino) for path in (name, other)]
    for path in (name, other):
        os.close(os.open(path, os.O_RDWR))
    print(word, result, "" if before == after else f"{before} became {after}", outcome(os.stat, name + "-new"), flush=True)
END
chmod 755 "$dir/refused.py"
expected='rename-onto EPERM  ENOENT
rename-from EPERM  ENOENT
rename-away EPERM  ENOENT
rename-noreplace EEXIST  ENOENT
rename-exchange EPERM  ENOENT
rename-directory ENOTDIR  ENOENT
mkdir EEXIST  ENOENT
symlink EEXIST  ENOENT
link-onto EEXIST  ENOENT
link-from EPERM  ENOENT
mknod EEXIST  ENOENT
mkfifo EEXIST  ENOENT
rmdir ENOTDIR  ENOENT'
expect_equal "refused" "$expected" "$(timeout "$deadline" "$python" "$dir/refused.py" "$dir/A" 2>&1)"

# The same for another user, where that is possible here.
mkdir -m 777 "$dir/A/user"
if command -v setpriv >/dev/null && setpriv --reuid=12345 --clear-groups true; then
    expect_equal "refused to a user" "$expected" \
        "$(timeout "$deadline" setpriv --reuid=12345 --clear-groups "$python" "$(for_others "$dir/refused.py")" "$dir/A/user" 2>&1)"
fi

# sed -i makes another file and renames it.
echo before >"$dir/A/edited"
refused sed -i s/before/after/ "$dir/A/edited" 2>"$dir/err"
finds 'Operation not permitted' "$dir/err"
expect_equal "the text" before "$(<"$dir/A/edited")"
refused compgen -G "$dir/A/sed*"

# An exclusive open of such a file still waits, on this host and on the other one.
hold holder "$dir/A/job"
expect holder held
expect_status 1 mkdir "$dir/A/job" 2>/dev/null
for host in A B; do
    call "waiter-$host" "$dir/$host/job" excl hold
done
wait_claims job 3
expect_status 1 mkdir "$dir/A/job" 2>/dev/null
refused ln -s target "$dir/A/job" 2>/dev/null
expect_equal "an exclusive open that does not wait" "excl-nb EEXIST" \
    "$(timeout "$deadline" "$python" "$tests/lib/calls.py" "$dir/A/job" excl-nb)"
expect_status 1 mv "$dir/A/edited" "$dir/A/job" 2>/dev/null
release holder
wait_until "$deadline" grep -q '^excl ok' "$dir/waiter-A.out" "$dir/waiter-B.out"
stat "$dir/A/job" >/dev/null
release waiter-A waiter-B
