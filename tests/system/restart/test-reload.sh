#!/bin/bash
# SIGHUP reads the configuration anew: what can change counts from then on for files that are opened, what cannot is named, and
# a configuration with an error changes nothing.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

reloads=0
# reload TEXT: of the whole file; until the daemon has read it.
reload() {
    printf '%s\n' "$1" >"$dir/A.ini"
    send_signal A HUP
    reloads=$((reloads + 1))
    wait_until "$deadline" reloaded
}

reloaded() {
    [ "$(grep -c 'read anew\|stays as it was' "$dir/A.log")" -eq "$reloads" ]
}


set_mark() {
    mark=$(wc -l <"$dir/A.log")
}

printf '%s\n' '[locks]' 'process_ranges = 1' '[locks "narrow/*"]' 'file_ranges = 1' >"$dir/A.ini"
start_dlockfs A --config "$dir/A.ini" -o linger=70ms,directories=narrow

call old "$dir/A/job" open w-nb:0-1 await="$dir/go" w-nb:10-11 hold
expect old "w-nb:0-1 ok"
call limited "$dir/A/narrow/x" open w-nb:0-1 r-nb:10-11
expect limited "r-nb:10-11 ENOLCK"

# Policies and directories; what the command line says (directories) stays.
set_mark
reload $'[mount]\nlog_level = debug\ndirectories = other\n[locks]\nprocess_ranges = 2'
call new "$dir/A/narrow/new" open w-nb:0-1 w-nb:10-11 w-nb:20-21
expect new "w-nb:20-21 ENOLCK"
said new "w-nb:10-11 ok"
go go
expect old "w-nb:10-11 ENOLCK" # it was opened before
test ! -d "$dir/A/other"
stop_dlockfs A

# Without such options: directories are made; idle names go; the level of messages changes.
printf '%s\n' '[mount]' 'idle = 1d' >"$dir/A.ini"
: >"$dir/A.log"
reloads=0
launch() {
    hosts+=(A)
    setsid "$dlockfs" --foreground --config "$dir/A.ini" "$dir/A" >>"$dir/A.log" 2>&1 </dev/null &
    process_record "$dir" A $!
    wait_until "$deadline" mount_settled A
}
launch
touch "$dir/A/name"
test -e "$dir/A/name"
test ! -e "$dir/A/one" # and the kernel remembers that
reload $'[mount]\nidle = 1s\ndirectories = one one/two'
wait_until "$deadline" test -d "$dir/A/one/two"
wait_until "$deadline" test ! -e "$dir/A/name"

# A file in the way of a directory is no reason to stop.
hold holder "$dir/A/taken"
expect holder held
reload $'[mount]\ndirectories = taken/below'
grep -q 'cannot make taken/below: Not a directory' "$dir/A.log"
release holder

# Errors: the place, and nothing is changed.
for bad in $'[mount]\nidle = 1s\ndirectories = three\nlog_level = loud' $'[mount]\n[nonsense]'; do
    reload "$bad"
    line=$(tail -n 1 "$dir/A.log")
    [[ $line == "dlockfs: error: $dir/A.ini:"[24]": "*"; the configuration stays as it was" ]] || fail "$line"
done
test ! -d "$dir/A/three"
rm "$dir/A.ini"
send_signal A HUP
reloads=$((reloads + 1))
wait_until "$deadline" reloaded
[[ $(tail -n 1 "$dir/A.log") == *"$dir/A.ini: No such file"* ]] || fail "$(tail -n 1 "$dir/A.log")"
flock "$dir/A/job" true
stop_dlockfs A

# In the background the daemon leaves the folder to which the name of the file belongs.
printf '%s\n' '[locks]' 'process_ranges = 1' >"$dir/A.ini"
(cd "$dir" && "$dlockfs" --store local: --config A.ini A)
call background "$dir/A/x" open w-nb:0-1 w-nb:10-11
finish background
expect_equal "within the limit" "w-nb:10-11 ENOLCK" "$(tail -n 1 "$dir/background.out")"
: >"$dir/A.ini"
kill -HUP "$(sed -n 's/^pid=//p' "$dir/A/.dlockfs/status")"
two_ranges() {
    "$python" "$tests/lib/calls.py" "$dir/A/y" open w-nb:0-1 w-nb:10-11 | finds '10-11 ok'
}
wait_until "$deadline" two_ranges
umount "$dir/A"

(umask 077 && echo hosts:secret >"$dir/secret")
# Every key of ZooKeeper that does not depend on its library, changed: those that the manual says need a restart are named, one a line, and no others.
declare -A changed=([mode]=0700 [idle]=2m [directories]=d [allow_other]=no [user]=root [log_level]=error [audit]=yes
    [user_waiters]=5 [user_files]=5 [user_names]=5 [user_ranges]=5 [user_writes]=5 [peers]=127.0.0.1:1
    [url]=zookeeper://127.0.0.1:1/x [session_timeout]=20s [retry_delay]=1s [retry_jitter]=1s [turn_grants]=3 [turn_time]=1s [turn_pause]=1s [new_root]=yes [digest_file]=$dir/secret [acl]=private
    [wait_limit]=1h [try_limit]=1s [try_grace]=0ms [linger]=1ms [handoff]=3
    [keep]=1s [lock_delay]=1s [min_hold]=1s [max_hold]=1s [process_ranges]=7 [file_ranges]=7 [text_limit]=7 [on_lost]=SIGTERM [on_revoke]=SIGTERM
    [owner]=daemon [group]=1 [recipe]=kazoo [exclusive_open]=open [style]=file [file_owner]=process [steal]=no)
: >"$dir/A.ini"
: >"$dir/A.log"
reloads=0
launch
text=
while read -r key _; do
    case $key in
        \[*) text+=${text:+$'\n'}$key ;;
        tls_* | sasl_* | etcd_* | redis_* | sentinel_*) ;;
        slots) text+=$'\n[locks "several"]\nslots = 3' ;; # not beside handoff and keep
        *) text+=$'\n'"$key = ${changed[$key]?no other value here for $key}" ;;
    esac
done < <("$dlockfs" --help | grep -E '^(\[|  [a-z_]+ =)')
printf '%s\n' "$text" | grep -v '^log_level' >"$dir/A.ini"
reload "$(<"$dir/A.ini")"
sed -n 's/^dlockfs: warning: \[.*\] \(.*\): needs \(.*\) to change$/\1 \2/p' "$dir/A.log" | sort >"$dir/named"
awk '/^\.It Ic / { key = $3 } sub(/^It needs /, "") && sub(/ to change.*/, "") { print key, $0 }' "$source_dir/etc/man/dlockfs.ini.5" |
    grep -v "^tls_\|^sasl_\|^etcd_\|^redis_\|^sentinel_" | sort >"$dir/manual"
test -s "$dir/manual"
diff -u "$dir/manual" "$dir/named"
# The level last, and after all others: it hides what it is to hide.
reload_silently() {
    printf '%s\n' "$1" >"$dir/A.ini"
    send_signal A HUP
}
set_mark
reload_silently $'[mount]\nlog_level = error\ndirectories = last'
wait_until "$deadline" test -d "$dir/A/last"
expect_equal "messages below the level" 0 "$(($(wc -l <"$dir/A.log") - mark))"
stop_dlockfs A

# Nothing is read from below the daemon's own mount, for which it would wait itself: neither the configuration nor what it
# names, by whatever way the path leads there.
: >"$dir/A.log"
reloads=0
: >"$dir/A.ini"
launch
hold inside "$dir/A/inside.ini"
expect inside held
ln -s A/inside.ini "$dir/link.ini"
ln -sf link.ini "$dir/A.ini.new"
mv "$dir/A.ini.new" "$dir/A.ini"
send_signal A HUP
reloads=$((reloads + 1))
wait_until "$prompt" reloaded
line="dlockfs: error: $dir/A.ini: is below the mount point $dir/A itself, expected a file elsewhere; the configuration stays as it was"
expect_equal "a configuration below the mount" "$line" "$(tail -n 1 "$dir/A.log")"
soon stat "$dir/A/inside.ini" >/dev/null
rm "$dir/A.ini"
reload $'[store]\ndigest_file = '"$dir"$'/./A//secret\n'
line="dlockfs: error: $dir/A.ini:2: digest_file: $dir/./A//secret: is below the mount point $dir/A itself, expected a file elsewhere; the configuration stays as it was"
expect_equal "a secret below the mount" "$line" "$(tail -n 1 "$dir/A.log")"
soon stat "$dir/A/inside.ini" >/dev/null
# A start refuses the same.
refused timeout "$deadline" "$dlockfs" --config "$dir/A/inside.ini" "$dir/A" 2>"$dir/err"
grep -qxF "dlockfs: error: $dir/A/inside.ini: is below the mount point $dir/A itself, expected a file elsewhere" "$dir/err" || fail "$(<"$dir/err")"

# A program that is to take over must not go back to the folder in which the first one was started, if the mount is upon it.
: >"$dir/B.log"
mkdir "$dir/B"
(cd "$dir/B" && exec setsid "$dlockfs" --foreground . >>"$dir/B.log" 2>&1 </dev/null) &
process_record "$dir" B $!
hosts+=(B)
wait_until "$deadline" mount_settled B
send_signal B USR2
wait_until "$deadline" grep -qF "$dir/B, where it was started: is below the mount point itself, expected a start in another folder; this program goes on" "$dir/B.log"
soon flock "$dir/B/job" true
