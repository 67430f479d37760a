#!/bin/bash
# dlockctl history tells who held a lock and how that ended, from the journal of the host, and from logs of several hosts by their tokens.

# The journal's socket has a fixed place: in a mount namespace of its own, that ends with the test.
if [ "${IN_NAMESPACE:-}" != yes ]; then
    IN_NAMESPACE=yes exec unshare --mount -- "$0"
fi
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

journald=/lib/systemd/systemd-journald
requires grep -q 'HAVE_LIBSYSTEMD' "$build/compile_commands.json"
requires test -x "$journald"
mount -t tmpfs none /run
mkdir -p /run/systemd/journal /run/log/journal
[ ! -d /var/log/journal ] || mount -t tmpfs none /var/log/journal
"$journald" 2>"$dir/journald.log" &
journald_pid=$!
cleanup_fn kill $journald_pid
wait_until "$deadline" test -S /run/systemd/journal/socket

# grants ARGUMENT...: of each grant its host, command, end, reason, and whether clocks say where it stands.
grants() {
    "$dlockctl" history --json "$@" 2>"$dir/history.err" |
        jq -r '.grants[] | [.host, .command, .ended, .why, .by_clock] | map(tostring) | join(" ")'
}

# has_grants COUNT NAME
has_grants() {
    [ "$(grants --mount "$dir/A" "$2" | wc -l)" -eq "$1" ]
}

start_zookeeper
: >"$dir/A.log"
JOURNAL_STREAM=$(stat -c %d:%i "$dir/A.log") start_dlockfs A -o audit,max_hold=1h
start_dlockfs B -o audit

# From the journal: each way in which a lock is given up, and a name that no terminal should be sent.
name=$'odd\e[31m name'
hold first "$dir/A/$name"
expect first held
"$dlockctl" --mount "$dir/A" revoke "$name" >"$dir/out"
release first
hold second "$dir/A/$name"
expect second held
"$dlockctl" --mount "$dir/B" break "$name" --yes >"$dir/out"
release second
expect_status 0 "$dlockctl" --mount "$dir/A" run --max-hold 0.2 --on-lost ignore "$name" sleep 1
"$dlockctl" --mount "$dir/A" run "$name" true
wait_until "$deadline" has_grants 4 "$name"
host=$(hostname)
expect_equal grants "$host flock released revoked false
$host flock lost broken false
$host dlockctl lost max_hold false
$host dlockctl released null false" "$(grants --mount "$dir/A" "$name")"
expect_equal "the last one" "$host dlockctl released null false" "$(grants -n 1 --mount "$dir/A" "$name")"
refused grep -q $'\e' <<<"$("$dlockctl" --mount "$dir/A" history "$name")"

# Any user may write into the journal: what the user of another program says there counts for nothing.
setpriv --reuid 4711 --clear-groups -- "$python" - "$dir/A" "$name" <<'PYTHON'
import socket, sys
message = "audit: granted kind=flock mode=exclusive host=evil pid=1 uid=0 command=evil waited=0.1 lock=odd%1B[31m%20name"
fields = {"MESSAGE": message, "DLOCKFS_AUDIT": "granted", "DLOCKFS_MOUNTPOINT": sys.argv[1], "DLOCKFS_LOCK": sys.argv[2]}
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(
    "".join(f"{name}={value}\n" for name, value in fields.items()).encode(), "/run/systemd/journal/socket")
PYTHON
"$dlockctl" --mount "$dir/A" run "$name" true
wait_until "$deadline" has_grants 5 "$name"
refused grep -q evil <<<"$(grants --mount "$dir/A" "$name")"

# A journal that was collected is a file.
"$dlockctl" --mount "$dir/A" run taken true
wait_until "$deadline" has_grants 1 taken
find /run/log/journal /var/log/journal -name '*.journal' -exec cp {} "$dir/collected" \; 2>/dev/null
expect_equal "a journal's file" "$host dlockctl released null false" "$(grants taken "$dir/collected")"

# Logs of hosts whose clocks are wrong: by token, as far as there are any.
cat >"$dir/web1" <<'LOG'
2026-11-29T21:00:00.5+00:00 web1 dlockfs[12]: audit: granted kind=flock mode=exclusive host=web1 pid=1 uid=0 command=a waited=0.1 lock=job
2026-11-29T21:00:01Z web1 dlockfs[12]: audit: token host=web1 pid=1 uid=0 command=a token=50 lock=job
2026-11-29T21:00:02Z web1 dlockfs[12]: audit: released kind=flock mode=exclusive host=web1 pid=1 uid=0 command=a held=1.5 token=50 lock=job
2026-11-29T21:00:03Z web1 dlockfs[12]: audit: granted kind=flock mode=exclusive host=evil pid=1 lock=job: root has broken the lock of process 3
2026-11-29T21:00:09Z web1 dlockfs[12]: audit: granted kind=flock mode=exclusive host=web1 pid=2 uid=0 command=c waited=0.1 lock=job
LOG
cat >"$dir/web2" <<'LOG'
1700000000.25 web2 dlockfs[12]: audit: granted kind=flock mode=exclusive host=web2 pid=7 uid=33 command=b waited=12.0 lock=job
1700000001.25 web2 dlockfs[12]: audit: token host=web2 pid=7 uid=33 command=b token=70 lock=job
audit: lost kind=flock mode=exclusive host=web2 pid=7 uid=33 command=b held=15.5 why=session token=70 lock=job
LOG
expect_equal "grants of two hosts" "web1 a released null false
web2 b lost session false
web1 c null null true" "$(grants job "$dir/web2" "$dir/web1")"
grep -q '^dlockctl: job: 1 of 3 grants have no fencing token' "$dir/history.err"
expect_equal "from stdin" "web2 b lost session false" "$(grants job - <"$dir/web2")"

if "$python" -c 'import jsonschema' 2>/dev/null; then
    "$dlockctl" history --json job "$dir/web2" "$dir/web1" 2>"$dir/err" >"$dir/found.json"
    "$python" -c 'import json, jsonschema, sys
schema, found = (json.load(open(path)) for path in sys.argv[1:])
jsonschema.validate(found, {"$defs": schema["$defs"], "$ref": "#/$defs/history"})' "$source_dir/etc/dlockctl.schema.json" "$dir/found.json"
fi

# Mistakes get one line each.
expect_status 66 "$dlockctl" history nobody "$dir/web1" 2>"$dir/err"
grep -q '^dlockctl: nobody: no line of the audit in these files names it; expected' "$dir/err"
gzip "$dir/web1"
expect_status 65 "$dlockctl" history job "$dir/web1.gz" 2>"$dir/err"
grep -q 'web1.gz: is compressed; expected text' "$dir/err"
expect_status 66 "$dlockctl" --mount "$dir/A" history nobody 2>"$dir/err"
grep -q '^dlockctl: nobody: this host.s journal has no line' "$dir/err"
expect_status 64 "$dlockctl" history -n 0 job "$dir/web2" 2>"$dir/err"
grep -q '^dlockctl: -n 0: expected a number of grants from 1 to 1000' "$dir/err"
expect_equal "lines of mistakes" 1 "$(wc -l <"$dir/err")"
