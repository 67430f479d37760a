#!/bin/bash
# In the background the command returns when the mount is usable, with nothing on its output, and the daemon has let go of the
# terminal and the folder it was started in.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
mkdir "$dir/background" "$dir/here"

# From a folder, with a relative mountpoint; the pipe is read to its end, so nobody may keep it open.
cd "$dir"
(umask 077 && echo hosts:secret >digest)
output=$(timeout "$deadline" "$dlockfs" --store "$store" -o new_root -o "digest_file=$dir/digest,acl=open" background 2>&1)
cd /
is_mounted "$dir/background"
comes_free "$dir/background/job"
process_record "$dir" daemon "$(daemons_of background)"
expect_equal "daemons" 1 "$(daemons_of background | wc -l)"
[ "$(wc -l <<<"$output")" -le 2 ] || fail "says: $output"
daemon=$(pid daemon)
expect_equal "its folder" / "$(readlink "/proc/$daemon/cwd")"
# A session of its own, no terminal.
expect_equal "its terminal" "?" "$(ps -o tty= -p "$daemon" | tr -d ' ')"
[ "$(ps -o sid= -p "$daemon" | tr -d ' ')" != "$(ps -o sid= -p $$ | tr -d ' ')" ] || fail "still in our session"
for number in 0 1 2; do
    expect_equal "descriptor $number" /dev/null "$(readlink "/proc/$daemon/fd/$number")"
done

# What is left out of a core dump, which a secret is, stays out of the swap as well.
unlocked() {
    awk '$1 == "Size:" { small = $2 <= 64 } $1 == "VmFlags:" && small && / dd/ && !/ io/ { all++; locked += / lo/ }
        END { print all - locked, "of", (all > 0 ? "some" : "none") }' "/proc/$1/smaps"
}
expect_equal "secrets that may be swapped" "0 of some" "$(unlocked "$daemon")"

# A start that fails says so with its status and one line, before the parent returns.
refused timeout "$deadline" "$dlockfs" --store "$store" "$dir/none/none" 2>"$dir/err"
expect_equal "lines: $(<"$dir/err")" 1 "$(wc -l <"$dir/err")"

hold holder "$dir/background/job"
expect holder held
kill -TERM "$daemon"
wait_until "$deadline" gone daemon
not_mounted "$dir/background"
wait_claims job 0
