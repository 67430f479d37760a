#!/bin/bash
# The metrics are what promtool takes for well-formed, they say what the test did, and counters never fall.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# shellcheck source=../../lib/promtool.sh
. "$tests/lib/promtool.sh"

# scrape HOST: reads the metrics into $dir/HOST.metrics. What counts must not have become less.
scrape() {
    cat "$dir/$1/.dlockfs/metrics" >"$dir/$1.scraped"
    touch "$dir/$1.metrics"
    awk '
        /^#/ { next }
        FILENAME == ARGV[1] { before[$1] = $2; next }
        { seen[$1] = 1 }
        $1 ~ /_(total|bucket|sum|count)($|{)/ && $2 < before[$1] { print $1, "fell from", before[$1], "to", $2; bad = 1 }
        END {
            for (name in before)
                if (name ~ /_(total|bucket|sum|count)($|{)/ && !(name in seen)) { print name, "is gone"; bad = 1 }
            exit bad
        }' "$dir/$1.metrics" "$dir/$1.scraped" >&2 || fail "a counter fell"
    mv "$dir/$1.scraped" "$dir/$1.metrics"
}

# metric HOST NAME[{LABELS}]: the value when it was read last; nothing if there is none.
metric() {
    awk -v "name=$2" '$1 == name { print $2 }' "$dir/$1.metrics"
}

# expect_metrics HOST NAME[{LABELS}]=VALUE...: reads them anew.
expect_metrics() {
    local host=$1 pair
    shift
    scrape "$host"
    for pair; do
        expect_equal "${pair%=*} of $host" "${pair##*=}" "$(metric "$host" "${pair%=*}")"
    done
}

# at_least HOST NAME[{LABELS}] VALUE
at_least() {
    awk -v "found=$(metric "$1" "$2")" -v "least=$3" 'BEGIN { exit !(found != "" && found + 0 >= least + 0) }' ||
        fail "$2 of $1: '$(metric "$1" "$2")', expected at least $3"
}

# shows HOST NAME[{LABELS}]=VALUE: whether it is that now.
shows() {
    scrape "$1"
    [ "$(metric "$1" "${2%=*}")" = "${2##*=}" ]
}

# counts_names HOST: it has asked for them, which it does behind what others wait for.
counts_names() {
    scrape "$1"
    [ -n "$(metric "$1" dlockfs_store_root_names)" ]
}

# check HOST: the form.
check() {
    scrape "$1"
    "$promtool" check metrics <"$dir/$1.metrics" >"$dir/promtool.out" 2>&1 || fail "promtool: $(<"$dir/promtool.out")"
    expect_equal "promtool's remarks" "" "$(<"$dir/promtool.out")"
}

acquired() {
    echo "dlockfs_acquisitions_total{kind=\"$1\",outcome=\"$2\"}"
}

requires find_promtool

# Without a server there is nothing to tell about one.
start_dlockfs L
check L
flock "$dir/L/job" true
expect_metrics L "$(acquired flock granted)=1" dlockfs_session_connected=1 dlockfs_sessions_lost_total=0
expect_equal "metrics of a server" "" "$(grep -E '^dlockfs_(store|lease|session_timeout)_' "$dir/L.metrics" | grep -v '^dlockfs_store_info{scheme="local",root="",hash="[0-9a-f]*"} 1$' || true)"
stop_dlockfs L

start_zookeeper
start_proxy link
begin=$(date +%s)
start_dlockfs A --session-timeout 12s --store "$(proxied link)"
wait_until "$deadline" shows A dlockfs_session_connected=1
expect_metrics A dlockfs_session_timeout_seconds=12.000 dlockfs_reconnects_total=0 dlockfs_sessions_lost_total=0 \
    dlockfs_holders=0 dlockfs_waiters=0 dlockfs_locks=0 "$(acquired flock granted)=0" \
    'dlockfs_store_operation_seconds_count{operation="place"}=0'
expect_equal "dlockfs_lease_left_seconds, nothing held" "" "$(metric A dlockfs_lease_left_seconds)"
at_least A dlockfs_start_time_seconds "$begin"
at_least A "dlockfs_build_info{version=\"$("$dlockfs" --version | cut -d' ' -f2)\"}" 1

#
# Grants and refusals, of each kind
#

for ((i = 0; i < 5; i++)); do
    flock "$dir/A/job" true
done
call granted "$dir/A/job" excl close excl close open w:0-9 u:0-9 r:0-9 u:0- ofd-w:5-5 close sh fsync fsync fsync
expect granted "close ok"
finish granted
expect_metrics A "$(acquired flock granted)=5" "$(acquired open granted)=2" "$(acquired record granted)=3" \
    'dlockfs_wait_seconds_count{kind="flock"}=5' 'dlockfs_wait_seconds_count{kind="open"}=2' \
    'dlockfs_wait_seconds_count{kind="record"}=3' 'dlockfs_hold_seconds_count{kind="flock"}=5' \
    'dlockfs_hold_seconds_count{kind="open"}=2' 'dlockfs_hold_seconds_count{kind="record"}=3' dlockfs_holders=0
quick=$(metric A 'dlockfs_wait_seconds_bucket{kind="flock",le="0.5"}')
at_least A 'dlockfs_store_operation_seconds_count{operation="place"}' 10
at_least A 'dlockfs_store_operation_seconds_count{operation="withdraw"}' 9
at_least A 'dlockfs_store_operation_seconds_bucket{operation="place",le="+Inf"}' 10
at_least A 'dlockfs_fuse_requests_total{operation="setlkw"}' 8
at_least A 'dlockfs_fuse_requests_total{operation="release"}' 8
open_files=$(metric A dlockfs_open_files)

start_dlockfs B --session-timeout 4s
hold holder "$dir/B/job"
expect holder held
for ((i = 0; i < 3; i++)); do
    expect_status 1 flock -n "$dir/A/job" true
done
call refused "$dir/A/job" excl-nb open w-nb:0-9 r-nb:0-9 get-w:0-9
finish refused
expect_metrics A "$(acquired flock refused)=3" "$(acquired open refused)=1" "$(acquired record refused)=2" \
    "$(acquired flock granted)=5" 'dlockfs_wait_seconds_count{kind="flock"}=5' \
    "dlockfs_open_files=$open_files"

#
# Waiting
#

call interrupted "$dir/A/job" open alarm=0.3 ex alarm=0.3 excl
finish interrupted
expect_metrics A "$(acquired flock interrupted)=1" "$(acquired open interrupted)=1" dlockfs_waiters=0
call waiter1 "$dir/A/job" open ex hold
wait_until "$deadline" shows A dlockfs_waiters=1
call waiter2 "$dir/A/job" open sh hold
call waiter3 "$dir/A/job" open w:0-9 hold
wait_until "$deadline" shows A dlockfs_waiters=3
expect_metrics A dlockfs_holders=0 dlockfs_locks=1 "dlockfs_open_files=$((open_files + 3))"
sleep 1 # the least that they are to have waited
scrape A
at_least A dlockfs_oldest_waiter_seconds 1
grep -Eqx "oldest_waiter=job pid=$(pid waiter1) for_s=[1-9][0-9]*" "$dir/A/.dlockfs/status" || fail "$(<"$dir/A/.dlockfs/status")"
release holder
expect waiter1 "ex ok"
expect_metrics A dlockfs_holders=1 dlockfs_waiters=2
grep -Eqx "oldest_holder=job pid=$(pid waiter1) for_s=[0-9]+" "$dir/A/.dlockfs/status"
at_least A dlockfs_lease_left_seconds 0.001
at_least A 'dlockfs_wait_seconds_sum{kind="flock"}' 1
expect_metrics A 'dlockfs_wait_seconds_count{kind="flock"}=6' "dlockfs_wait_seconds_bucket{kind=\"flock\",le=\"0.5\"}=$quick"
release waiter1 waiter2 waiter3
wait_claims job 0
expect_metrics A dlockfs_holders=0 dlockfs_waiters=0 "dlockfs_open_files=$open_files"

#
# A deadlock
#

call first "$dir/A/cycle" open w:0-0 await="$dir/first" w:1-1 hold
expect first "w:0-0 ok"
call second "$dir/A/cycle" open w:1-1 await="$dir/second" w:0-0 close hold
expect second "w:1-1 ok"
go first
wait_until "$deadline" shows A dlockfs_waiters=1
go second
expect first "w:1-1 ok"
expect second "w:0-0 EDEADLK"
expect_metrics A "$(acquired record deadlock)=1" "$(acquired record lost)=0"
release first second
wait_claims cycle 0

#
# A lost session: the handle is fenced
#

call lost "$dir/A/lost" open ex await="$dir/fenced" ex un sh-nb w:0-9 hold
expect lost "ex ok"
expect_metrics A dlockfs_fenced_handles_total=0 dlockfs_holders=1
cut_link link
wait_until "$deadline" shows A dlockfs_fenced_handles_total=1
expect_metrics A dlockfs_session_connected=0 dlockfs_sessions_lost_total=1 dlockfs_holders=0
go fenced
expect lost "w:0-9 EIO"
join_link link
wait_until "$deadline" shows A dlockfs_session_connected=1
expect_metrics A "$(acquired flock lost)=2" "$(acquired record lost)=1" dlockfs_fenced_handles_total=1 \
    dlockfs_sessions_lost_total=1 dlockfs_reconnects_total=1
at_least A 'dlockfs_store_errors_total{operation="prove",error="connection"}' 1
check A
release lost
stop_dlockfs A

#
# The store is away for a while, within the session's timeout
#

start_dlockfs C --session-timeout 60s -o try_limit=200ms
call keeper "$dir/C/kept" open ex hold
expect keeper "ex ok"
stop_zookeeper
wait_until "$deadline" shows C dlockfs_session_connected=0
call without "$dir/C/job" open ex-nb
expect without "ex-nb ENOLCK"
expect_metrics C "$(acquired flock unavailable)=1" dlockfs_reconnects_total=0
start_zookeeper
wait_until "$deadline" shows C dlockfs_session_connected=1
flock "$dir/C/job" true
expect_metrics C dlockfs_reconnects_total=1 dlockfs_sessions_lost_total=0 dlockfs_fenced_handles_total=0 \
    dlockfs_holders=1 "$(acquired flock granted)=2"
wait_until "$deadline" counts_names C
check C

#
# dlockctl metrics: the same, and also when there is nobody who answers
#

# up MOUNT: what it says of that.
up() {
    "$dlockctl" --mount "$1" metrics >"$dir/up.metrics"
    "$promtool" check metrics <"$dir/up.metrics" >"$dir/promtool.out" 2>&1 || fail "promtool: $(<"$dir/promtool.out")"
    [ "$(awk '$1 == "dlockfs_sample_time_seconds" { print int($2) }' "$dir/up.metrics")" -ge "$begin" ]
    awk '$1 == "dlockfs_up" { print $2 }' "$dir/up.metrics"
}

expect_equal "a daemon that answers" 1 "$(up "$dir/C")"
expect_equal "names" "$(sed -n 's/^# TYPE //p' "$dir/C.metrics")" "$(sed -n 's/^# TYPE //p' "$dir/up.metrics")"
pause C
expect_equal "a daemon that hangs" 0 "$(up "$dir/C")"
resume C
mkdir "$dir/none"
expect_equal "no mount" 0 "$(up "$dir/none" 2>"$dir/err")"
grep -q "$dir/none: is no mount of dlockfs" "$dir/err"
expect_status 74 "$dlockctl" --mount "$dir/C" metrics >/dev/full 2>"$dir/err"
grep -q 'metrics: cannot be written: No space left on device' "$dir/err"

#
# watching.md has all of them, and the alerts; these are raised by what they are for; the dashboard asks for nothing else
#

etc=$source_dir/etc/prometheus
sed -n 's/.*alert: //p' "$etc/dlockfs.rules.yml" | while read -r name; do
    grep -q "^| \`$name\` |" "$source_dir/etc/doc/watching.md" || fail "not in watching.md: $name"
done
cp "$etc/dlockfs.rules.yml" "$dir/rules.yml"
jq -r '.panels[].targets[].expr' "$etc/dlockfs-dashboard.json" | sed 's/\$__rate_interval/5m/g' |
    jq -R '{record: "dashboard", expr: .}' | jq -s '{groups: [{name: "dashboard", rules: .}]}' >"$dir/dashboard.yml"
"$promtool" check rules --lint=none "$dir/dashboard.yml" >"$dir/promtool.out" 2>&1 || fail "the dashboard: $(<"$dir/promtool.out")"
grep -oh 'dlockfs_[a-z_]*' "$dir/dashboard.yml" "$dir/rules.yml" | sort -u | sed 's/_bucket$//' | while read -r name; do
    grep -q "^# TYPE $name " "$dir/C.metrics" || fail "there is no such number: $name"
done

while read -r name; do
    grep -q "\`$name\`" "$source_dir/etc/doc/watching.md" || fail "not in watching.md: $name"
done < <(sed -n 's/^# TYPE \([^ ]*\).*/\1/p' "$dir/C.metrics")
cat >"$dir/alerts.yml" <<'END'
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'dlockfs_up{instance="dead"}', values: '1x20 0x40'}
      - {series: 'dlockfs_up{instance="well"}', values: '1x60'}
      - {series: 'dlockfs_sample_time_seconds{instance="stale"}', values: '0+60x10 600x50'}
      - {series: 'dlockfs_sample_time_seconds{instance="well"}', values: '0+60x60'}
      - {series: 'dlockfs_session_connected{instance="cut",store="cron"}', values: '1x20 0x40'}
      - {series: 'dlockfs_session_connected{instance="well"}', values: '1x60'}
      - {series: 'dlockfs_session_timeout_seconds{instance="cut",store="cron"}', values: '15x60'}
      - {series: 'dlockfs_session_timeout_seconds{instance="well"}', values: '15x60'}
      - {series: 'dlockfs_lease_left_seconds{instance="cut",store="cron"}', values: '8x20 3x40'}
      - {series: 'dlockfs_lease_left_seconds{instance="well"}', values: '7.2x60'}
      - {series: 'dlockfs_fenced_handles_total{instance="lost"}', values: '0x30 4x30'}
      - {series: 'dlockfs_fenced_handles_total{instance="well"}', values: '2x60'}
      - {series: 'dlockfs_waiters{instance="crowd"}', values: '200x60'}
      - {series: 'dlockfs_acquisitions_total{instance="crowd",kind="flock",outcome="granted"}', values: '5+1x60'}
      - {series: 'dlockfs_sessions_lost_total{instance="lost"}', values: '0x30 1x30'}
      - {series: 'dlockfs_sessions_lost_total{instance="well"}', values: '0x60'}
      - {series: 'dlockfs_setbacks_total{instance="lost"}', values: '0x30 1x30'}
      - {series: 'dlockfs_setbacks_total{instance="well"}', values: '0x60'}
      - {series: 'dlockfs_waiters{instance="stuck"}', values: '0x10 1x50'}
      - {series: 'dlockfs_waiters{instance="busy"}', values: '7x60'}
      - {series: 'dlockfs_acquisitions_total{instance="stuck",kind="flock",outcome="granted"}', values: '5x60'}
      - {series: 'dlockfs_acquisitions_total{instance="stuck",kind="flock",outcome="refused"}', values: '5+1x60'}
      - {series: 'dlockfs_acquisitions_total{instance="busy",kind="flock",outcome="granted"}', values: '5x60'}
      - {series: 'dlockfs_acquisitions_total{instance="busy",kind="open",outcome="granted"}', values: '5+1x60'}
      - {series: 'dlockfs_waiters{instance="half"}', values: '7x60'}
      - {series: 'dlockfs_waiters{instance="half",store="cron"}', values: '0x10 1x50'}
      - {series: 'dlockfs_acquisitions_total{instance="half",kind="open",outcome="granted"}', values: '5+1x60'}
      - {series: 'dlockfs_acquisitions_total{instance="half",kind="open",outcome="granted",store="cron"}', values: '5x60'}
      - {series: 'dlockfs_draining{instance="forgotten"}', values: '0x10 1x170'}
      - {series: 'dlockfs_draining{instance="well"}', values: '0x120 1x60'}
      - {series: 'dlockfs_oldest_holder_seconds{instance="hung"}', values: '85000+60x60'}
      - {series: 'dlockfs_oldest_holder_seconds{instance="busy"}', values: '80000+60x40 0x20'}
      - {series: 'dlockfs_oldest_waiter_seconds{instance="hidden"}', values: '13000+60x60'}
      - {series: 'dlockfs_oldest_waiter_seconds{instance="busy"}', values: '0x60'}
      - {series: 'dlockfs_acquisitions_total{instance="hidden",kind="flock",outcome="granted"}', values: '5+1x60'}
      - {series: 'dlockfs_hosts{instance="here"}', values: '3x20 2x40'}
      - {series: 'dlockfs_hosts{instance="there",store="cron"}', values: '2x60'}
      - {series: 'dlockfs_hosts{instance="typo",store="cron"}', values: '2x20 1x40'}
      - {series: 'dlockfs_store_info{instance="here",scheme="etcd",root="/a",hash="1"}', values: '1x60'}
      - {series: 'dlockfs_store_info{instance="there",scheme="etcd",root="/a",hash="1"}', values: '1x60'}
      - {series: 'dlockfs_store_info{instance="here",scheme="etcd",root="/a",hash="1",store="cron"}', values: '1x60'}
      - {series: 'dlockfs_store_info{instance="typo",scheme="etcd",root="/aa",hash="1",store="cron"}', values: '_x20 1x40'}
    alert_rule_test:
      - {eval_time: 125m, alertname: DlockfsDraining, exp_alerts: []}
      - eval_time: 140m
        alertname: DlockfsDraining
        exp_alerts:
          - exp_labels: {instance: forgotten}
            exp_annotations: {summary: "forgotten has granted nothing new for 2 hours; to end that: dlockctl undrain"}
      - {eval_time: 20m, alertname: DlockfsOldestHolder, exp_alerts: []}
      - {eval_time: 20m, alertname: DlockfsOldestWaiter, exp_alerts: []}
      - eval_time: 30m
        alertname: DlockfsOldestHolder
        exp_alerts:
          - exp_labels: {instance: hung}
            exp_annotations: {summary: "hung has held a lock for 1d 0h 6m 40s; see oldest_holder in .dlockfs/status there"}
      - eval_time: 30m
        alertname: DlockfsOldestWaiter
        exp_alerts:
          - exp_labels: {instance: hidden}
            exp_annotations: {summary: "a call on hidden has waited for a lock for 4h 6m 40s; see oldest_waiter in .dlockfs/status there"}
      - {eval_time: 15m, alertname: DlockfsHostMissing, exp_alerts: []}
      - {eval_time: 15m, alertname: DlockfsHostAlone, exp_alerts: []}
      - {eval_time: 15m, alertname: DlockfsHostsDiffer, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsHostMissing
        exp_alerts:
          - exp_labels: {}
            exp_annotations: {summary: "hosts of dlockfs with a session in their store: 2, and there were more within the last hour; see: dlockctl hosts"}
          - exp_labels: {store: cron}
            exp_annotations: {summary: "hosts of dlockfs with a session in their store: 1, and there were more within the last hour; see: dlockctl hosts"}
      - eval_time: 35m
        alertname: DlockfsHostAlone
        exp_alerts:
          - exp_labels: {instance: typo, store: cron}
            exp_annotations: {summary: "no other host uses the store of typo: compare its url with that of the others"}
      - eval_time: 35m
        alertname: DlockfsHostsDiffer
        exp_alerts:
          - exp_labels: {store: cron}
            exp_annotations: {summary: "hosts of dlockfs have their locks in different places, or settings that are not alike; see: dlockctl hosts"}
      - eval_time: 35m
        alertname: DlockfsDown
        exp_alerts:
          - exp_labels: {instance: dead}
            exp_annotations: {summary: "no dlockfs answers on dead: whoever asks for a lock there gets an error"}
      - {eval_time: 12m, alertname: DlockfsStale, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsStale
        exp_alerts:
          - exp_labels: {instance: stale}
            exp_annotations: {summary: "the metrics of dlockfs on stale are more than five minutes old: nobody reads them any more"}
      - eval_time: 35m
        alertname: DlockfsDisconnected
        exp_alerts:
          - exp_labels: {instance: cut, store: cron}
            exp_annotations: {summary: "cut is not connected to its store, and grants no lock of it"}
      - {eval_time: 12m, alertname: DlockfsJeopardy, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsJeopardy
        exp_alerts:
          - exp_labels: {instance: cut, store: cron}
            exp_annotations: {summary: "cut will lose its locks in 3s unless the servers answer"}
      - eval_time: 35m
        alertname: DlockfsFenced
        exp_alerts:
          - exp_labels: {instance: lost}
            exp_annotations: {summary: "on lost programs have lost locks that they held"}
      - eval_time: 35m
        alertname: DlockfsLongQueue
        exp_alerts:
          - exp_labels: {instance: crowd}
            exp_annotations: {summary: "more than 100 calls on crowd have waited for 10 minutes"}
      - {eval_time: 20m, alertname: DlockfsSetBack, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsSetBack
        exp_alerts:
          - exp_labels: {instance: lost}
            exp_annotations: {summary: "lost has found its store in an earlier state than before: locks that were granted since are lost"}
      - {eval_time: 20m, alertname: DlockfsSessionLost, exp_alerts: []}
      - eval_time: 35m
        alertname: DlockfsSessionLost
        exp_alerts:
          - exp_labels: {instance: lost}
            exp_annotations: {summary: "lost has lost a session, and all locks that it held in that store"}
      - {eval_time: 35m, alertname: DlockfsWaitersTooLong, exp_alerts: []}
      - eval_time: 50m
        alertname: DlockfsWaitersTooLong
        exp_alerts:
          - exp_labels: {instance: stuck}
            exp_annotations: {summary: "calls on stuck have waited for 30 minutes, and none got its lock"}
          - exp_labels: {instance: half, store: cron}
            exp_annotations: {summary: "calls on half have waited for 30 minutes, and none got its lock"}
END
"$promtool" test rules "$dir/alerts.yml" >"$dir/promtool.out" 2>&1 || fail "alerts: $(<"$dir/promtool.out")"
