#!/bin/bash
# SIGUSR2: the last rehearsal, while which the daemon hears nothing of its servers, takes no longer than a part of what the lease
# has left, if anything is held.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
cp "$dlockfs" "$dir/real"
cp "$dlockfs" "$dir/dlockfs"
dlockfs=$dir/dlockfs
start_dlockfs A --session-timeout 5s
flock -n "$dir/A/job" true

# Each second rehearsal, which is the last one, takes nearly the two seconds that it may take in any case.
rm "$dir/dlockfs"
cat >"$dir/dlockfs" <<END
#!/bin/sh
case \${DLOCKFS_TAKE_OVER:-} in
*rehearsal)
    echo rehearsal >>"$dir/rehearsals"
    [ \$((\$(wc -l <"$dir/rehearsals") % 2)) -eq 1 ] || sleep 1.8
    ;;
esac
exec "$dir/real" "\$@"
END
chmod 755 "$dir/dlockfs"
install -m 666 /dev/null "$dir/rehearsals" # the daemon may be of another user

ended() { # TEXT
    grep -q "$1" "$dir/A.log"
}
hold holder "$dir/A/job"
expect holder held
send_signal A USR2
wait_until "$deadline" ended 'does not take over: it has not shown in time that it can; this program goes on$\|goes on with version'
ended 'this program goes on$' || fail "it took over, $(tail -n 1 "$dir/A.log")"
expect_equal rehearsals 2 "$(wc -l <"$dir/rehearsals")"
release holder
