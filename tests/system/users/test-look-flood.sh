#!/bin/bash
# A user who looks at .dlockfs all the time does not flood the servers, by their own count of requests: looks come one after
# the other, with pauses, and show what is so after the call. While a server does not answer they end together.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v setpriv

looker=12345
requires setpriv "--reuid=$looker" "--regid=$looker" --clear-groups -- true

start_zookeeper
start_dlockfs A --session-timeout 60s
PYTHONPATH=$tests/bench timeout "$deadline" "$python" "$tests/system/users/look_flood.py" "$(zookeeper_address)" "$dir/A" "$looker" \
    >"$dir/flood.out" 2>&1 || fail "$(tail -n 3 "$dir/flood.out")"
cat "$dir/flood.out"

# reader NAME: a program of the user that reads the queues and says how that ended.
reader() {
    # shellcheck disable=SC2016
    start "$1" setpriv "--reuid=$looker" "--regid=$looker" --clear-groups -- "$python" -c 'import errno, sys
try:
    print(len(open(sys.argv[1]).read()))
except OSError as error:
    print(errno.errorcode[error.errno])' "$dir/A/.dlockfs/queues"
}

pause zk
for name in first second interrupted third; do
    reader "$name"
    wait_until "$deadline" asleep "$name"
done
kill -KILL "$(pid interrupted)"
wait_until "$prompt" gone interrupted
wait_until "$deadline" gone first
for name in first second third; do
    wait_until "$prompt" gone "$name"
    expect_equal "the $name look" ETIMEDOUT "$(<"$dir/$name.out")"
done
resume zk
reader fourth
wait_until "$deadline" gone fourth
[ "$(<"$dir/fourth.out")" -ge 0 ] || fail "the look after it: $(<"$dir/fourth.out")"
