#!/bin/bash
# Programs that keep small data in a directory of style = file, with what is preset, on both stores: an SQLite database and Python's mailboxes,
# to which processes on two hosts add at a time, and nothing is lost; a repository of git in which two hosts commit. A database that
# becomes too long stays whole.
#
# From the environment: STORES, some of "zookeeper etcd".
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

requires "$python" -c 'import sqlite3'
requires command -v git
export HOME=$dir GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

of() { # PROGRAM VERB HOST ARGUMENT...
    timeout "$deadline" "$python" "$tests/system/programs/program_texts.py" "$1" "$2" "$dir/$3/files/$1" "${@:4}"
}

# adds PROGRAM TIMES: two processes on A and one on B, at a time.
adds() {
    local writer
    for writer in A1 A2 B1; do
        start "$1-$writer" "$python" "$tests/system/programs/program_texts.py" "$1" add "$dir/${writer%?}/files/$1" "$writer" "$2"
    done
    for writer in A1 A2 B1; do
        finish "$1-$writer" || fail "$1, $writer: $(<"$dir/$1-$writer.out")"
    done
}

sql() { # HOST STATEMENTS
    at "$1" "$python" -c 'import sqlite3, sys; sqlite3.connect("sqlite", isolation_level=None).executescript(sys.argv[1])' "$2"
}

database() {
    local host
    sql A 'CREATE TABLE entry (name TEXT, number INTEGER); CREATE TABLE counter (value INTEGER); INSERT INTO counter VALUES (0)'
    adds sqlite 12
    for host in A B; do
        expect_equal "the database on $host" "36 36 ok" "$(of sqlite check "$host")"
    done
    sql B 'INSERT INTO entry VALUES (zeroblob(100000), 1)' 2>"$dir/too-long.out" && fail "a row of 100000 bytes is inserted"
    grep -q "disk I/O error" "$dir/too-long.out" || fail "a row of 100000 bytes: $(<"$dir/too-long.out")"
    for host in A B; do
        expect_equal "the database that has no room, on $host" "36 36 ok" "$(of sqlite check "$host")"
    done
}

mailboxes() {
    local box host
    at A touch mbox # by itself the one who makes it empties it
    at A "$python" -c 'import mailbox; mailbox.Maildir("maildir")'
    for box in mbox maildir; do
        adds "$box" 8
        for host in A B; do
            expect_equal "mails in $box on $host" 24 "$(of "$box" check "$host")"
        done
    done
}

repository() {
    local turn host
    at A git init -q repository
    for turn in A1 B2 A3 B4; do
        host=${turn%?}
        head -c 10000 /dev/urandom >"$dir/$host/files/repository/$turn"
        at "$host" git -C repository add "$turn"
        at "$host" git -C repository commit -q -m "$turn"
    done
    at B git -C repository gc -q
    for host in A B; do
        says_at "$host" $'B4\nA3\nB2\nA1' git -C repository log --format=%s
        says_at "$host" "" git -C repository status --porcelain
        at "$host" git -C repository fsck --strict >"$dir/fsck-$host.out" 2>&1 || fail "fsck on $host: $(<"$dir/fsck-$host.out")"
    done
}

for kind in ${STORES:-zookeeper etcd}; do
    [ "$kind" = zookeeper ] || type -P etcd >/dev/null || continue
    STORE=$kind start_plain_hosts
    database
    mailboxes
    repository
    stop_dlockfs A
    stop_dlockfs B
done
