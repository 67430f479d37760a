#!/bin/bash
# owner, group and mode of the configuration, with users who have no privileges: who may open a lock, wait for it, see its
# queue, take its name away, or steer it; on each host, whether the file is in use or not; and all of that after a reload.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v setpriv

owner=12345 member=23456 stranger=34567 group=4242

# as USER-ID COMMAND...: only the member has a further group.
as() {
    local user=$1 groups=--clear-groups
    shift
    [ "$user" != "$member" ] || groups=--groups=$group
    setpriv "--reuid=$user" "--regid=$user" "$groups" -- "$@"
}

# calls USER-ID FILE STEP...: what lib/calls.py prints, on one line.
calls() {
    local user=$1
    shift
    as "$user" timeout "$deadline" "$python" -u "$(for_others "$tests/lib/calls.py")" "$@" | paste -sd' '
}

# hold_as USER-ID NAME FILE STEP...: in the background, to the end of the steps.
hold_as() {
    local user=$1 name=$2 groups=--clear-groups
    shift 2
    [ "$user" != "$member" ] || groups=--groups=$group
    start "$name" setpriv "--reuid=$user" "--regid=$user" "$groups" -- "$python" -u "$(for_others "$tests/lib/calls.py")" "$@" hold
}

denied() { # USER-ID COMMAND...: for want of permission, and for no other reason
    refused as "$@" 2>"$dir/err"
    grep -Eqi 'permission denied|not permitted' "$dir/err" || fail "$*: $(<"$dir/err")"
}

# show_names HOST: an exclusive open that is refused hides the name from stat, until the directory is listed.
show_names() {
    ls "$dir/$1" >"$dir/names"
}

requires as 12345 true
as "$stranger" test -x "$dir" || fail "$dir cannot be entered by other users"
start_zookeeper
cat >"$dir/locks.ini" <<END
[mount]
directories = team
[locks "team"]
owner = $owner
group = $group
mode = 0660
[locks "team/*"]
owner = $owner
group = $group
mode = 0660
[locks "private"]
owner = $owner
[locks "shown"]
owner = $owner
mode = 0644
END
start_dlockfs A --config "$dir/locks.ini"
start_dlockfs B --config "$dir/locks.ini"
for host in A B; do
    awk -v "point=$dir/$host" '$2 == point && $4 ~ /default_permissions/ { found = 1 } END { exit !found }' /proc/self/mounts
done

# The attributes are those of the configuration, whoever creates the file with whatever mode, and so are those of directories.
for host in A B; do
    expect_equal "directory" "$owner $group 770" "$(stat -c '%u %g %a' "$dir/$host/team")"
    as "$owner" sh -c 'umask 077; : >>"$1/private"' - "$dir/$host"
    as "$member" sh -c 'umask 0; : >>"$1/team/job"' - "$dir/$host"
    sh -c ': >>"$1/shown"' - "$dir/$host"
    expect_equal "private" "$owner 0 660" "$(stat -c '%u %g %a' "$dir/$host/private")"
    expect_equal "team/job" "$owner $group 660" "$(stat -c '%u %g %a' "$dir/$host/team/job")"
    expect_equal "shown" "$owner 0 644" "$(stat -c '%u %g %a' "$dir/$host/shown")"
done
# Others are as ever: their creator's.
expect_equal "own mode" "open ok ex ok mode ok fstat ok" "$(calls "$member" "$dir/A/other" open ex mode=640 fstat)"
expect_equal "other" "$member $member 640" "$(stat -c '%u %g %a' "$dir/A/other")"

# Who may not open does not come to a claim: by no way to open, on no host, and in use or not.
for host in A B; do
    for steps in "open ex-nb" "excl" "excl-nb" "append ex-nb"; do
        # shellcheck disable=SC2086
        found=$(calls "$stranger" "$dir/$host/private" $steps)
        [[ $found == *" EACCES"* && $found != *" ok"* ]] || fail "$host, $steps: $found"
    done
    show_names "$host"
    rm "$dir/$host/private"
    expect_equal "unused, excl" "excl EACCES" "$(calls "$stranger" "$dir/$host/private" excl)"
    expect_equal "unused, open" "open EACCES" "$(calls "$stranger" "$dir/$host/private" open)"
    test ! -e "$dir/$host/private"
    denied "$stranger" flock -n "$dir/$host/team/job" true
    denied "$stranger" flock -n "$dir/$host/team/new" true
    # To read is to lock.
    as "$stranger" flock -n "$dir/$host/shown" true
    denied "$stranger" sh -c ': >>"$1"' - "$dir/$host/shown"
    expect_equal "shown, excl" "excl EACCES" "$(calls "$stranger" "$dir/$host/shown" excl)"
    wait_claims shown 0
done
[ -z "$(zookeeper children /dlockfs/private)" ] || fail "a stranger came to a claim"

# To lock is not to write: an exclusive open leaves the text alone if it may only read.
keeps_text() { # USER-ID HOST
    as "$1" "$python" -c 'import os, sys
with open(os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT | os.O_EXCL)) as lock:
    print(lock.read())' "$dir/$2/shown"
}
as "$owner" sh -c 'printf text >"$1"' - "$dir/A/shown"
expect_equal "the text for a stranger" text "$(keeps_text "$stranger" A)"
expect_equal "the text for its owner" "" "$(keeps_text "$owner" A)"

# Who may: by owner, group, and root; across hosts.
hold_as "$owner" first "$dir/A/private" excl
expect first "excl ok"
expect_equal "made anew by exclusive open" "$owner 0 660" "$(stat -c '%u %g %a' "$dir/A/private")"
expect_equal "the owner elsewhere" "excl-nb EEXIST" "$(calls "$owner" "$dir/B/private" excl-nb)"
expect_equal "a stranger elsewhere" "excl-nb EACCES" "$(calls "$stranger" "$dir/B/private" excl-nb)"
expect_equal "a stranger here" "excl EACCES" "$(calls "$stranger" "$dir/A/private" excl)"
expect_status 1 flock -n "$dir/B/private" true
show_names A
hold_as "$member" second "$dir/B/team/job" open ex
expect second "ex ok"
expect_status 1 as "$owner" flock -n "$dir/A/team/job" true

# What is fixed stays so, for root too; what changes nothing is no error.
for user in 0 "$owner"; do
    denied "$user" chmod 666 "$dir/A/private"
    denied "$user" chown "$stranger" "$dir/A/private"
    denied "$user" chmod 777 "$dir/A/team"
done
as "$owner" chmod 660 "$dir/A/private"
chown "$owner" "$dir/A/private"
as "$owner" sh -c 'echo text >"$1"; touch "$1"' - "$dir/A/private"
expect_equal "a changed text" text "$(<"$dir/A/private")"

# Names: of files, and of directories, that could stand in somebody's way.
denied "$stranger" rm -f "$dir/A/private"
denied "$stranger" rmdir "$dir/A/team"
denied "$stranger" mkdir "$dir/A/team/own"
show_names A
rm "$dir/A/private"
denied "$stranger" mkdir "$dir/A/private"
denied "$stranger" mknod "$dir/A/private" p
expect_equal "mknod of a file" EACCES "$(as "$stranger" "$python" -c 'import errno, os, stat, sys
try:
    os.mknod(sys.argv[1], stat.S_IFREG | 0o666)
except OSError as error:
    print(errno.errorcode[error.errno])' "$dir/A/private")"
as "$owner" touch "$dir/A/private"

# The queues: those may see them who may open the lock, in the list of all as well.
as "$owner" cat "$dir/B/.dlockfs/locks/private" | finds " uid=$owner "
as "$member" cat "$dir/B/.dlockfs/locks/team/job" | finds " uid=$member "
denied "$stranger" cat "$dir/B/.dlockfs/locks/private"
denied "$member" cat "$dir/B/.dlockfs/locks/private"
denied "$stranger" ls "$dir/B/.dlockfs/locks/team"
hold_as "$stranger" third "$dir/A/open" open ex
expect third "ex ok"
wait_claims open 1
# seen USER-ID HOST: which locks are in the list of all.
seen() {
    as "$1" cat "$dir/$2/.dlockfs/queues" | sed -n 's/^lock=\([^ ]*\) .*/\1/p' | paste -sd' '
}
for host in A B; do
    expect_equal "the list for root" "open private team/job" "$(seen 0 "$host")"
    expect_equal "the list for a member" "open team/job" "$(seen "$member" "$host")"
    expect_equal "the list for a stranger" "open" "$(seen "$stranger" "$host")"
    expect_equal "its lines" 2 "$(as "$stranger" wc -l "$dir/$host/.dlockfs/queues" | cut -d' ' -f1)"
done

# Steering: strangers do not come so far, members may steer what is their own, the owner all claims.
steer() { # USER-ID ARGUMENT...
    as "$1" timeout "$deadline" "$python" "$(for_others "$tests/lib/steer.py")" "${@:2}"
}
expect_equal "a stranger" EACCES "$(steer "$stranger" break "$dir/A" team/job 1)"
hold_as "$owner" fourth "$dir/A/team/job" open ex
wait_claims team/job 2
expect_equal "a member, what is the owner's" EPERM "$(steer "$member" break "$dir/A" team/job 2)"
expect_equal "the owner, what is a member's" ok "$(steer "$owner" break "$dir/A" team/job 1)"
expect fourth "ex ok"
release first second third fourth

# A reload counts at once, for names in use and directories that the kernel knows. Who has a file open keeps it.
reloads=0
reload() {
    send_signal A HUP
    reloads=$((reloads + 1))
    wait_until "$deadline" reloaded
}
reloaded() {
    [ "$(grep -c 'read anew\|stays as it was' "$dir/A.log")" -eq "$reloads" ]
}
hold_as "$owner" keeper "$dir/A/private" open ex await="$dir/go" fsync un ex-nb
expect keeper "ex ok"
denied "$stranger" ls "$dir/A/team"
as "$owner" test -r "$dir/A/team"
sed -i "s/^owner = .*/owner = $stranger/" "$dir/locks.ini"
reload
expect_equal "reloaded" "$stranger 0 660" "$(stat -c '%u %g %a' "$dir/A/private")"
as "$stranger" flock -n "$dir/A/shown" true
# The kernel asks anew before it refuses, but not before it allows.
closed() {
    ! as "$owner" test -r "$dir/A/team"
}
wait_until "$deadline" closed
wait_until "$deadline" as "$stranger" test -r "$dir/A/team"
denied "$owner" flock -n "$dir/A/private" true
expect_status 1 as "$stranger" flock -n "$dir/A/private" true
go go
expect keeper "ex-nb ok"
release keeper
: >"$dir/none.ini"
cp "$dir/none.ini" "$dir/locks.ini"
reload
expect_equal "its creator's again" "$owner $owner" "$(stat -c '%u %g' "$dir/A/private")"

# Whom nobody knows: where, and what would be right.
printf '%s\n' '[locks "a"]' '' 'group = no-such-group' >"$dir/locks.ini"
reload
grep -qF "$dir/locks.ini:3: group: no group \"no-such-group\" on this host, expected the name or number of a group, or creator; the" \
    "$dir/A.log"
