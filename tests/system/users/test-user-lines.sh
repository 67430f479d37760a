#!/bin/bash
# What one user may make a daemon write into the log: a user who asks for its own lock again and again, is refused again and
# again, or makes files and takes them away from another host has a few lines; the others are counted. Root and others have theirs.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

flooder=12345 other=23456
at_once=100 in_audit=1000 # lines that fs/files/user_lines.c allows, and some more with time

# flood ARGUMENT...: see system/users/line_flood.py.
flood() {
    expect_equal "flood $*" "done" "$(timeout "$deadline" "$python" "$(for_others "$tests/system/users/line_flood.py")" "$@")"
}

# lines HOST PATTERN
lines() {
    grep -c -- "$2" "$dir/$1.log" || true
}

# left_out HOST USER-ID: messages that the log says were left out.
left_out() {
    sed -n "s/^dlockfs: warning: user $2: and \([0-9]*\) more messages were left out\$/\1/p" "$dir/$1.log" | awk '{ sum += $1 } END { print sum + 0 }'
}

requires setpriv "--reuid=$flooder" "--regid=$flooder" --clear-groups true
start_zookeeper
printf '%s\n' '[mount]' 'directories = files' '[locks]' 'on_revoke = SIGUSR1' 'steal = yes' '[locks "files"]' 'style = file' >"$dir/lines.ini"
start_dlockfs A --config "$dir/lines.ini" -o audit
start_dlockfs B --config "$dir/lines.ini"

flood "$flooder" revoke "$dir/A" 600
written=$(lines A "revoke-$flooder: .*asked for claim")
[ "$written" -lt 300 ] || fail "$written lines of one user"
[ "$written" -ge "$((at_once - 5))" ] || fail "$written lines of a user who may have $at_once"

# Neither others nor root are concerned.
flood "$other" revoke "$dir/A" 1
expect_equal "lines of another user" 1 "$(lines A "revoke-$other: .*asked for claim")"
flood 0 revoke "$dir/A" "$((at_once + 50))"
expect_equal "lines of root" "$((at_once + 50))" "$(lines A "revoke-0: .*asked for claim")"

flood "$flooder" try "$dir/A" 8000

# On both hosts: that of the maker, and that where the files are taken away.
begin=$(now_ms)
flood "$other" take "$dir/A" 300 "$dir/B"
wait_until "$deadline" grep -q "lock file taken away" "$dir/A.log"
most=$((at_once + 2 * (($(now_ms) - begin) / 1000 + 15)))
for host in A B; do
    written=$(lines "$host" "files/[0-9]*: .*\(taken away\|was removed\)")
    [ "$written" -le "$most" ] || fail "$host: $written lines of 300, expected at most $most"
done

# At the latest when the daemon stops it says what was left out, and no line is lost without being counted.
stop_dlockfs A
stop_dlockfs B
written=$(lines A "revoke-$flooder: .*asked for claim")
all=$((written + $(left_out A "$flooder")))
[ "$all" -ge 600 ] || fail "$written lines and $(left_out A "$flooder") more, of 600"
written=$(lines A "audit: .* uid=$flooder .*lock=try\$")
more=$(sed -n "s/^dlockfs: audit: more host=.* uid=$flooder lines=\([0-9]*\)\$/\1/p" "$dir/A.log" | awk '{ sum += $1 } END { print sum + 0 }')
[ "$written" -ge "$((in_audit - 5))" ] || fail "$written lines in the audit, expected about $in_audit at once"
[ "$more" -gt 0 ] || fail "no line of the audit was left out, $written were written"
[ "$((written + more))" -ge 8002 ] || fail "the audit has $written lines and $more more, of 8000 refusals"
