#!/bin/bash
# A lock file is there while it is in use on the host and for a while after; then its name disappears by itself.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_dlockfs A -o idle=1s
expect_status 1 test -e "$dir/A/job"
mkdir "$dir/A/folder"
flock -n "$dir/A/job" true
flock -n "$dir/A/folder/job" true
exec 9>"$dir/A/used"
call holder "$dir/A/held" excl hold
expect holder "excl ok"
expect_equal "in use" "folder held used" "$(cd "$dir/A" && find . -mindepth 1 -maxdepth 1 ! -name job ! -name .dlockfs -printf '%f\n' | sort | paste -sd' ')"
name_is_gone() {
    local names
    names=$(ls -A "$1")
    ! grep -qx "$2" <<<"$names" && [ ! -e "$1/$2" ]
}
wait_until "$deadline" name_is_gone "$dir/A" job
wait_until "$deadline" name_is_gone "$dir/A/folder" job
# What is open, held or a directory stays, and works when it is used again.
test -e "$dir/A/used"
test -e "$dir/A/held"
test -d "$dir/A/folder"
expect_status 1 flock -n "$dir/A/held" true
flock -n 9
expect_status 1 flock -n "$dir/A/used" true
exec 9>&-
release holder
wait_until "$deadline" name_is_gone "$dir/A" used
wait_until "$deadline" name_is_gone "$dir/A" held
flock -n "$dir/A/held" true
flock -n "$dir/A/job" true
wait_until "$deadline" name_is_gone "$dir/A" job
rmdir "$dir/A/folder"

# Many names at once, used while others disappear.
for round in 1 2 3; do
    "$python" - "$dir/A" <<'END'
import fcntl, os, sys
for number in range(1000):
    fd = os.open(f"{sys.argv[1]}/many{number}", os.O_RDONLY | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)
END
    [ "$round" != 2 ] || sleep 1
done
directory_is_empty() {
    [ -z "$(find "$dir/A" -mindepth 1 -maxdepth 1 -name 'many*')" ]
}
wait_until "$deadline" directory_is_empty

# Names that are opened again just as they disappear: no open fails, and whoever has locked one has it. That the name is there
# too is test-notifier.sh's.
"$python" - "$dir/A" <<'END'
import concurrent.futures, fcntl, os, sys, time
def reopen(number):
    path = f"{sys.argv[1]}/again{number}"
    for _ in range(4):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        time.sleep(1.0 + number % 60 * 0.0002)
        fd, other = (os.open(path, os.O_CREAT | os.O_RDWR) for _ in range(2))
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sys.exit(f"{path}: locked twice")
        except BlockingIOError:
            pass
        os.close(fd)
        os.close(other)
with concurrent.futures.ThreadPoolExecutor(200) as threads:
    list(threads.map(reopen, range(200)))
END
