#!/bin/bash
# dlockctl jobs and dlockctl metrics --locks: what has run of each job, on whichever host, in each store; who may see it; and the alerts
# of jobs that are late, or have failed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/promtool.sh
. "$tests/lib/promtool.sh"

requires type -P jq
find_promtool
printf '%s\n' '[store "here"]' 'url = local:' '[locks "secret*"]' 'mode = 0600' 'owner = root' >"$dir/dlockfs.ini"
start_zookeeper
start_dlockfs A --config "$dir/dlockfs.ini"
start_dlockfs B

on() {
    "$dlockctl" --mount "$dir/$1" "${@:2}"
}

jobs() {
    on A jobs --json | jq -r '.jobs[] | '"$1"
}

expect_equal "without jobs" "NAME  LAST  HOST  TOOK  STATUS  KEY  SUCCESS  NEXT" "$(on A jobs | sed 's/ *$//')"
expect_equal "without jobs" '{"mount": "'"$dir/A"'", "jobs": []}' "$(on A jobs --json | jq -c . | sed 's/":/": /g; s/,"/, "/g')"

on A run --every 1h cron/report true
on B run --once 'a "b"' 'back up' sleep 0.1
expect_status 3 on B run --once 'c' 'back up' sh -c 'exit 3'
expect_status 4 on A run --every 1m here/never sh -c 'exit 4'
on A run --once x secret true

expect_equal "jobs" "back up 2 1 3 c 0
cron/report 1 0 0 null 0
here/never 1 1 4 null null
secret 1 0 0 x 0" "$(jobs '"\(.name) \(.runs) \(.failed) \(.last.status) \(.last.key) \(.success.status)"')"
expect_equal "success" 'a "b"' "$(jobs 'select(.name == "back up") | .success.key')"
expect_equal "host" "$(uname -n)" "$(jobs 'select(.name == "cron/report") | .last.host')"
expect_equal "next" 3240 "$(jobs 'select(.name == "cron/report") | .next - .last.start | round')"
expect_equal "token" string "$(jobs 'select(.name == "cron/report") | .last.token | type')"
expect_equal "took" true "$(jobs 'select(.name == "back up") | .success.took >= 0.1')"
expect_equal "pattern" "cron/report" "$(on A jobs cron --json | jq -r '.jobs[].name')"
expect_equal "the other host" "back up,cron/report,secret" "$(on B jobs --json | jq -r '.jobs[].name' | paste -sd,)"
on A jobs >"$dir/table"
grep -Eq '^cron/report +[0-9]+s +[^ ]+ +[0-9.]+s +0 +[0-9]+s +5[0-9]m[0-9]*s' "$dir/table" || fail "$(<"$dir/table")"
grep -Eq '^here/never .* 4 +never' "$dir/table" || fail "$(<"$dir/table")"

# Anybody may have written that. What cannot be shown is escaped.
zookeeper make "/dlockfs/.dlockfs/runs/hostile" $'start=1 took=1 status=0 key=%1b[2J\njunk\nlock=other runs=1 failed=0\nstart=1 took=2 status=0 key=\033[2J'
expect_equal "hostile" '0.00s 0 \x1B[2J' "$(on A jobs hostile | awk 'NR == 2 { print $3, $4, $5 }')"
zookeeper make "/dlockfs/.dlockfs/runs/empty" junk
expect_equal "no runs" "" "$(on A jobs --json empty | jq -r '.jobs[].name')"
zookeeper delete /dlockfs/.dlockfs/runs/hostile

# Who may not see the lock does not see its job.
if [ "$(id -u)" = 0 ]; then
    expect_equal "for another user" "back up,cron/report,here/never" \
        "$(setpriv --reuid=1234 --clear-groups "$(for_others "$dlockctl")" --mount "$dir/A" jobs --json | jq -r '.jobs[].name' | paste -sd,)"
fi

# Metrics.
mkdir -p "$dir/B/cron"
hold holder "$dir/B/cron/report"
expect holder held
hold waiter "$dir/B/cron/report"
wait_claims cron/report 2
on A metrics --locks >"$dir/metrics"
"$promtool" check metrics <"$dir/metrics" >"$dir/promtool.out" 2>&1 || fail "promtool: $(<"$dir/promtool.out")"
value() {
    sed -n "s|^$1{lock=\"$2\"} ||p" "$dir/metrics"
}
expect_equal "status" 3.000 "$(value dlockfs_job_last_status back%20up)"
expect_equal "status" 4.000 "$(value dlockfs_job_last_status here/never)"
expect_equal "success" "" "$(value dlockfs_job_last_success_timestamp_seconds here/never)"
expect_equal "period" 3600.000 "$(value dlockfs_job_period_seconds cron/report)"
expect_equal "the last success" "$(jobs 'select(.name == "cron/report") | .success.start' | xargs printf '%.3f')" \
    "$(value dlockfs_job_last_success_timestamp_seconds cron/report)"
for name in dlockfs_job_duration_seconds dlockfs_lock_oldest_holder_seconds dlockfs_lock_oldest_waiter_seconds; do
    [ -n "$(value "$name" cron/report)" ] || fail "no $name: $(<"$dir/metrics")"
done
on A metrics >"$dir/plain.metrics"
if grep -q dlockfs_job "$dir/plain.metrics"; then
    fail "jobs without --locks"
fi
release holder waiter

# The document has the numbers and the alerts, and these are raised.
rules=$source_dir/etc/prometheus/dlockfs-jobs.rules.yml
for name in $(sed -n 's/^# TYPE \(dlockfs_\(job\|lock_oldest\)_[a-z_]*\) .*/\1/p' "$dir/metrics") $(sed -n 's/.*alert: //p' "$rules"); do
    grep -q "\`$name\`" "$source_dir/etc/doc/jobs.md" || fail "not in jobs.md: $name"
done
grep -oh 'dlockfs_[a-z_]*' "$rules" | sort -u | while read -r name; do
    grep -q "^# TYPE $name " "$dir/metrics" || fail "there is no such number: $name"
done
cp "$rules" "$dir/rules.yml"
cat >"$dir/alerts.yml" <<'END'
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'dlockfs_job_last_success_timestamp_seconds{instance="a",lock="late"}', values: '0x60'}
      - {series: 'dlockfs_job_last_success_timestamp_seconds{instance="b",lock="late"}', values: '60x60'}
      - {series: 'dlockfs_job_last_success_timestamp_seconds{instance="a",lock="well"}', values: '0+60x60'}
      - {series: 'dlockfs_job_period_seconds{instance="a",lock="late"}', values: '600x60'}
      - {series: 'dlockfs_job_period_seconds{instance="a",lock="well"}', values: '600x60'}
      - {series: 'dlockfs_job_last_status{instance="a",lock="late"}', values: '0x60'}
      - {series: 'dlockfs_job_last_status{instance="a",lock="failed"}', values: '0x20 7x40'}
      - {series: 'dlockfs_lock_oldest_holder_seconds{instance="a",lock="cron/hung"}', values: '20000+60x60'}
      - {series: 'dlockfs_lock_oldest_holder_seconds{instance="a",lock="leader"}', values: '90000+60x60'}
      - {series: 'dlockfs_lock_oldest_waiter_seconds{instance="a",lock="cron/hung"}', values: '1800+60x60'}
      - {series: 'dlockfs_lock_oldest_waiter_seconds{instance="b",lock="cron/hung"}', values: '1800+60x60'}
      - {series: 'dlockfs_lock_oldest_waiter_seconds{instance="a",lock="leader"}', values: '90000+60x60'}
    alert_rule_test:
      - {eval_time: 20m, alertname: DlockfsWaitsTooLong, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsWaitsTooLong
        exp_alerts:
          - exp_labels: {lock: cron/hung}
            exp_annotations: {summary: "somebody has waited for the lock cron/hung for 1h 5m 0s; see: dlockctl show cron/hung"}
      - {eval_time: 20m, alertname: DlockfsJobLate, exp_alerts: []}
      - eval_time: 31m
        alertname: DlockfsJobLate
        exp_alerts:
          - exp_labels: {lock: late}
            exp_annotations: {summary: "the job late has not succeeded for 30m 0s, two periods or more"}
      - {eval_time: 20m, alertname: DlockfsJobFailed, exp_alerts: []}
      - eval_time: 40m
        alertname: DlockfsJobFailed
        exp_alerts:
          - exp_labels: {lock: failed}
            exp_annotations: {summary: "the latest run of the job failed has failed, with status 7"}
      - {eval_time: 20m, alertname: DlockfsHeldTooLong, exp_alerts: []}
      - eval_time: 30m
        alertname: DlockfsHeldTooLong
        exp_alerts:
          - exp_labels: {lock: cron/hung}
            exp_annotations: {summary: "the lock cron/hung has been held for 6h 3m 20s; see: dlockctl show cron/hung"}
END
"$promtool" test rules "$dir/alerts.yml" >"$dir/promtool.out" 2>&1 || fail "alerts: $(<"$dir/promtool.out")"
