#!/bin/bash
# Programs that make lock files, with faults: when the daemon of a host is killed or cut off, its locks go by themselves, and no sooner; a
# holder that is cut off loses its lock before another host can make it. With file_owner = process a lock goes with its process; with
# steal = no nobody takes the lock of another host.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=programs.sh
. "$tests/system/programs/programs.sh"

[ "$programs_on" = mounts ] || skip "without dlockfs"
for program in lockfile-create lockfile dotlockfile emacs; do
    requires command -v "$program"
done
requires perl -MFile::NFSLock -e 1
requires "$python" -c 'import filelock'

start_zookeeper
start_proxy link
directories="files process kept"
sections='[locks "process"]
style = file
file_owner = process
[locks "kept"]
style = file
steal = no'
arguments_of=([A]="--session-timeout 4s --store $(proxied link)" [B]="--session-timeout 4s")
start_hosts A B
: >"$work/edited"

programs=(mkdir ln bash lockfile-create dotlockfile nfslock filelock emacs)
all_held() {
    local program
    for program in "${programs[@]}"; do
        hold_program "$program-holder" "$program" A
    done
    for program in "${programs[@]}"; do
        has_lock "$program" B || violation "$program: host A has the lock, host B finds it free"
    done
}
holders() {
    printf '%s-holder\n' "${programs[@]}"
}

# The daemon of host A is killed: its locks are those of nobody else until its session is over; then they are free, and who waited has it.
all_held
timeout "$deadline" lockfile -r 0 "$dir/A/files/lockfile"
start waiter sh -c 'lockfile -1 "$1" && echo got' - "$dir/B/files/lockfile"
kill_dlockfs A
killed=$(now_ms)
for program in "${programs[@]}"; do
    wait_until "$deadline" free_lock "$program" B
    [ $(($(now_ms) - killed)) -ge 2000 ] || fail "$program: free $(($(now_ms) - killed)) ms after the daemon of its host was killed"
done
expect waiter got
# shellcheck disable=SC2046
release $(holders)
start_hosts A
here="A B"
for program in "${programs[@]}"; do
    free_lock "$program" A || fail "$program: free on host B, host A finds it taken"
done
expect_equal "what a former process made on host A" lockfile "$(ls "$dir/A/files")"
rm -f "$dir/B/files/lockfile"
counts mkdir 2 3

# Host A is cut off. What it had made it no longer finds before host B can make it, and its open files say so.
all_held
call opened "$dir/A/files/opened" excl write=text await="$dir/lost" fsync read write=more hold
expect opened "write 4"
start seer "$python" "$tests/system/programs/program_lost.py" see "$dir/A/files/mkdir"
start maker "$python" "$tests/system/programs/program_lost.py" make "$dir/B/files/mkdir"
expect seer seen
cut_link link
for program in "${programs[@]}"; do
    [ "$program" = mkdir ] || wait_until "$deadline" free_lock "$program" B
done
wait_until "$deadline" grep -q '^made ' "$dir/maker.out"
wait_until "$deadline" grep -q '^gone ' "$dir/seer.out"
read -r _ seen how < <(grep "^gone " "$dir/seer.out")
read -r _ made <"$dir/maker.out"
echo "cut off: last seen on host A $((made - seen)) ms before host B made it, then $how"
[ "$seen" -lt "$made" ] || fail "host A saw its lock $((seen - made)) ms after host B had made it"
go lost
expect opened "write EIO"
expect_equal "the open file of a lock that was lost" "fsync EIO,read EIO,write EIO" "$(tail -n 3 "$dir/opened.out" | paste -sd,)"
join_link link
wait_until "$deadline" has_lock mkdir A # that of host B
for program in "${programs[@]}"; do
    [ "$program" = mkdir ] || wait_until "$deadline" free_lock "$program" A
done
# shellcheck disable=SC2046
release $(holders) opened
rmdir "$dir/B/files/mkdir"
wait_until "$deadline" free_lock mkdir A

# With file_owner = process the lock goes with the process that made it; so it is for programs that make it themselves.
folder=process
for program in nfslock filelock emacs; do
    hold_program "$program-killed" "$program" A
    has_lock "$program" B || violation "$program: host A has the lock, host B finds it free"
    release "$program-killed"
    wait_until "$deadline" free_lock "$program" B
    counts "$program" 1 3
done
timeout "$deadline" lockfile-create -r 0 "$dir/A/process/lock"
wait_until "$deadline" test ! -e "$dir/B/process/lock.lock"
folder=files

# The process that is written in a lock is one of another host: a program that looks for it on its own host takes the lock away, and so
# does one that finds it too old. With steal = no neither can.
for folder in files kept; do
    expected=$([ "$folder" = files ] && echo 0 || echo 8) # a stale lock that cannot be removed
    # The process of that number has ended here, as if it had never been on this host.
    bash -c 'dotlockfile -l -p -r 0 "$1"; exit' - "$dir/A/$folder/number"
    expect_status "$expected" dotlockfile -l -p -r 0 "$dir/B/$folder/number"
    dotlockfile -l -r 0 "$dir/A/$folder/age"
    expect_status 4 dotlockfile -l -r 0 "$dir/B/$folder/age"
    touch -d '10 minutes ago' "$dir/A/$folder/age"
    expect_status "$expected" dotlockfile -l -r 0 "$dir/B/$folder/age"
done
refused rm "$dir/B/kept/age" 2>"$dir/rm.err"
grep -q 'not permitted' "$dir/rm.err" || fail "$(<"$dir/rm.err")"
touch "$dir/B/kept/mine"
refused mv -f "$dir/B/kept/mine" "$dir/B/kept/age" 2>"$dir/mv.err"
grep -q 'not permitted' "$dir/mv.err" || fail "$(<"$dir/mv.err")"
rm "$dir/A/kept/age" "$dir/B/kept/mine"
expect_equal "left of these" number "$(ls "$dir/B/kept")"
