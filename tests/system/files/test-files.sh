#!/bin/bash
# Lock files (style = file), between two hosts, by their calls: what one makes is there for the other one,
# with its content, and cannot be made again; it stays when it is closed, and goes when it is removed, or with its host.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

"start_${STORE:-zookeeper}"
files_config files
for host in A B; do
    start_dlockfs "$host" --config "$dir/files.ini" --session-timeout 4s
done

# Exclusive create, and what the other host sees.
claim_at A lock || fail "A cannot make lock"
! claim_at B lock || fail "B makes lock, too"
! claim_at A lock || violation "A makes lock twice"
says_at B "$(at A cat lock)" cat lock
says_at B lock ls
expect_equal "files of A" files=1 "$(grep ^files= "$dir/A/.dlockfs/status")"
expect_equal "files of B" files=0 "$(grep ^files= "$dir/B/.dlockfs/status")"
grep -qx "dlockfs_lock_files 1" "$dir/A/.dlockfs/metrics" || fail "A counts no lock file"
at A rm lock
no_file B lock || fail "lock is there on B after rm on A"
claim_at B lock || fail "B cannot make lock after A"
at B rm lock

# Directories, with a file inside.
at A mkdir job
fails_at B "File exists" mkdir job
at A sh -c 'echo here >job/pid'
says_at B here cat job/pid
fails_at A "not empty" rmdir job
fails_at B "not empty" rmdir job
at A rm -r job
at B mkdir job
fails_at A "File exists" mkdir job
at B rmdir job

# Symbolic links, as emacs makes them.
at A ln -s someone@A.1234 .#text
says_at B someone@A.1234 readlink .#text
fails_at B "File exists" ln -s someone@B.1 .#text
at A rm .#text

# Hard links: a unique file, a link to it, and its number of links.
at A sh -c 'echo A >unique.A; ln unique.A lock'
says_at A 2 stat -c %h lock
says_at A "$(at A stat -c %i unique.A)" stat -c %i lock
says_at B 2 stat -c %h lock
at B sh -c 'echo B >unique.B'
fails_at B "File exists" ln unique.B lock
says_at B 1 stat -c %h unique.B
fails_at B "not permitted" ln unique.A other
at A rm unique.A
says_at A 1 stat -c %h lock
says_at B 1 stat -c %h lock
says_at B A cat lock
at A rm lock
at B ln unique.B lock
says_at A B cat lock
at B rm lock unique.B

# Rename: onto a free name, onto one's own.
at A sh -c 'echo 1 >new; mv -n new state'
says_at B 1 cat state
says_at B state ls
at A sh -c 'echo 2 >new; mv new state'
says_at B 2 cat state
says_at B state ls
at B sh -c 'echo 3 >new'
at B mv -n new state
says_at B 2 cat state
at B mv state taken
says_at A 2 cat taken
says_at A "new
taken" ls
wait_until "$deadline" grep -q "state: lock file taken away" "$dir/A.log"
at A rm taken
at B rm new

# Content, times and permissions are the same on both.
at A sh -c 'echo one >text'
at B sh -c 'echo two >>text'
says_at A "one
two" cat text
at B touch -d '2020-02-02 02:02:02 UTC' text
says_at A "$(date -d '2020-02-02 02:02:02 UTC' +%s)" stat -c %Y text
at A chmod 640 text
says_at B 640 stat -c %a text
at B truncate -s 3 text
says_at A one cat text
fails_at A "File too large" dd if=/dev/zero of=text bs=70000 count=1
at B sync text
at B flock text true
at A flock -s text true
at A rm text
at A sh -c ': >empty'
says_at B 0 stat -c %s empty
at A rm empty

# Taking away what another host has made.
claim_at A lock
at B rm lock
wait_until "$deadline" no_file A lock
grep -q "lock: a lock file of host .* was removed by process .* (rm) here" "$dir/B.log" || fail "B says nothing of the removal"
wait_until "$deadline" grep -q "files/lock: lock file taken away, or replaced, by another host" "$dir/A.log"
claim_at B lock
fails_at A "File exists" ln -s x lock
at B rm lock

# Names of all kinds.
long=$(printf 'n%.0s' {1..255})
for name in "$long" 'a b%c' $'bytes\xff\x01' '.hidden' 'job-1200000000' 'zookeeper'; do
    claim_at A "$name" || fail "A cannot make $name"
    ! claim_at B "$name" || violation "both make $name"
    says_at B "$name" ls -A --quoting-style=literal --show-control-chars
    at A rm -- "$name"
done

# Another client of ZooKeeper, by the same names: a unique ephemeral node.
client() { # NAME FILE TEXT
    start "$1" "$python" "$tests/system/files/ephemeral.py" "$(zookeeper_address)" "/dlockfs/files/$2" "$3"
}
if [ "${STORE:-zookeeper}" = zookeeper ]; then
    requires "$python" -c 'import kazoo'
    client first job "of a service"
    wait_until "$deadline" said first made
    fails_at A "File exists" mkdir job
    ! claim_at B job || fail "B makes job, too"
    says_at B "of a service" cat job
    send_signal first TERM
    finish first
    claim_at A job || fail "A cannot make job after the service"
    client second job "of a service"
    wait_until "$deadline" said second exists
    at A rm job
    wait_until "$deadline" said second made
    fails_at A "File exists" ln -s x job
    at B rm job
    release second

    # What it says of a file gives nobody the rights of root: 36845 is -rwsr-sr-t.
    client third setuid "abcdefghijklmnopabcdefghijklmnop
file mode=36845 uid=0 gid=0 links=1 host=c pid=1 command=c text=x
"
    wait_until "$deadline" said third made
    says_at A "755 0 1 x" sh -c 'echo "$(stat -c "%a %u %h" setuid) $(cat setuid)"'
    at B chmod 6711 setuid
    says_at A 711 stat -c %a setuid
    at B rm setuid
    release third
fi

# A list is taken when it is read, and anew from its beginning: a program that opens the directory, makes a name, and then looks who
# else has made one, finds all that were made before its own.
"$python" - "$dir/A/files" "$dir/B/files" <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
folders = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
names = []
for turn in range(6):
    names.append(f"job{turn}")
    os.mkdir(f"{sys.argv[1 + turn % 2]}/{names[-1]}")
    found = sorted(os.listdir(folders[turn % 2]))
    assert found == names, f"{found}, not {names}"
removed = [ctypes.c_void_p(libc.opendir(f"{path}/{names[0]}".encode())) for path in sys.argv[1:]]
for name in names:
    os.rmdir(f"{sys.argv[1]}/{name}")
assert os.listdir(folders[1]) == []
for folder in removed:
    while libc.readdir(folder):
        pass
    assert ctypes.get_errno() == 0, os.strerror(ctypes.get_errno())
END

# A host dies: its names go by themselves, and no sooner.
claim_at A lock
at A mkdir job
kill_dlockfs A
! claim_at B lock || fail "B makes lock while the session of A lives"
wait_until "$deadline" claim_at B lock
wait_until "$deadline" at B mkdir job
at B rm -r lock job
fusermount3 -uz "$dir/A" 2>/dev/null || true
start_dlockfs A --config "$dir/files.ini" --session-timeout 4s

# A clean stop takes them at once.
claim_at A lock
stop_dlockfs A
claim_at B lock || fail "lock is there after a clean stop"
at B rm lock
says_at B "" ls -A
