#!/bin/bash
# The main job: a script as cron runs it, guarded by flock(1), started on two hosts at the same moments, runs on one of them at a time and
# no run is lost where it waits.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A
start_dlockfs B
mkdir "$dir/A/cron" "$dir/B/cron"

cat >"$dir/backup.sh" <<'END'
#!/bin/sh
# backup.sh LOCK LOG [-n]: the usual header of a cron job.
if [ "$LOCKED" != yes ]; then
    lock=$1
    export LOCKED=yes
    exec flock $3 "$lock" "$0" "$@"
fi
mkdir "$2.running" || { echo overlap >>"$2"; exit 1; }
echo "begin $1" >>"$2"
sleep 0.02
echo "end $1" >>"$2"
rmdir "$2.running"
END
chmod +x "$dir/backup.sh"

# Waiting: every run of both hosts happens, one after the other.
for number in {1..20}; do
    start "a$number" "$dir/backup.sh" "$dir/A/cron/backup" "$dir/log"
    start "b$number" "$dir/backup.sh" "$dir/B/cron/backup" "$dir/log"
done
for number in {1..20}; do
    finish "a$number"
    finish "b$number"
done
expect_equal "violation: runs" 40 "$(grep -c '^begin' "$dir/log")"
expect_equal "overlaps" "" "$(grep overlap "$dir/log" || true)"
awk '/^begin/ { if (open) exit 1; open = 1 } /^end/ { if (!open) exit 1; open = 0 }' "$dir/log" ||
    fail "runs are not one after the other"

# Skipping: with -n the host that comes second does nothing.
hold running "$dir/A/cron/backup"
expect running held
expect_status 1 "$dir/backup.sh" "$dir/B/cron/backup" "$dir/log-n" -n
[ ! -e "$dir/log-n" ] || violation "it ran beside the other"
release running
wait_claims cron/backup 0
"$dir/backup.sh" "$dir/B/cron/backup" "$dir/log-n" -n
