#!/bin/bash
# Python's fcntl.flock, perl's flock, flock(1) and redirections of the shell exclude one another, on two hosts.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v perl
start_zookeeper
start_dlockfs A
start_dlockfs B

# Each takes the lock of a file in the mode EX or SH, or ends with 1 if it would have to wait; it says "held"
# and keeps the lock until its standard input ends.
cat >"$dir/try.py" <<'END'
import fcntl, sys
file = open(sys.argv[1], "a")
try:
    fcntl.flock(file, getattr(fcntl, "LOCK_" + sys.argv[2]) | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(1)
print("held", flush=True)
sys.stdin.read()
END
cat >"$dir/try.pl" <<'END'
use Fcntl ':flock';
$| = 1;
open(my $file, '>>', $ARGV[0]) or die "open: $!";
flock($file, ($ARGV[1] eq 'EX' ? LOCK_EX : LOCK_SH) | LOCK_NB) or exit($!{EWOULDBLOCK} ? 1 : 2);
print "held\n";
<STDIN>;
END
cat >"$dir/try.sh" <<'END'
exec 7>>"$1"
flock -n "$([ "$2" = EX ] && echo -x || echo -s)" 7 || exit 1
echo held
read -r _ || exit 0
END
cat >"$dir/try.flock" <<'END'
exec flock -n -E 1 "$([ "$2" = EX ] && echo -x || echo -s)" "$1" sh -c 'echo held; read -r _ || exit 0'
END

try() { # LANGUAGE FILE MODE
    case $1 in
        py) "$python" "$dir/try.py" "$2" "$3" ;;
        pl) perl "$dir/try.pl" "$2" "$3" ;;
        *) bash "$dir/try.$1" "$2" "$3" ;;
    esac
}

for holder in py pl sh flock; do
    for mode in EX SH; do
        mkfifo "$dir/$holder-$mode.fifo"
        try "$holder" "$dir/A/job" "$mode" <"$dir/$holder-$mode.fifo" >"$dir/$holder-$mode.out" &
        holding=$!
        exec 5>"$dir/$holder-$mode.fifo"
        expect "$holder-$mode" held
        for other in py pl sh flock; do
            for host in A B; do
                expect_status 1 try "$other" "$dir/$host/job" EX </dev/null
                if [ "$mode" = EX ]; then
                    expect_status 1 try "$other" "$dir/$host/job" SH </dev/null
                else
                    expect_status 0 try "$other" "$dir/$host/job" SH </dev/null >"$dir/reader.out"
                fi
            done
        done
        wait_claims job 1 # what was refused or released on the other host is on its way out
        exec 5>&-
        wait "$holding"
        # What a process that has ended held is free on its own host at once, and on the other when the servers know.
        expect_status 0 try py "$dir/A/job" EX </dev/null >"$dir/next.out"
        wait_claims job 0
        expect_status 0 try pl "$dir/B/job" EX </dev/null >"$dir/next.out"
        wait_claims job 0
    done
done
