#!/bin/bash
# Locks below a prefix in an ensemble of their own: they exclude over hosts like the others; when its server dies, their holders
# are fenced and the other locks go on; what is shown says so; a clean stop releases in both.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lease.sh
. "$tests/lib/lease.sh"
requires command -v jq

start_zookeeper jobs
jobs=$store
start_zookeeper
cat >"$dir/dlockfs.ini" <<END
[mount]
directories = cron cron/daily

[store]
session_timeout = 60s

[store "cron"]
url = $jobs
session_timeout = 10s
END
start_dlockfs A --config "$dir/dlockfs.ini"
start_dlockfs B --config "$dir/dlockfs.ini"

# claims NAME PATH: how many stand at that path in the server of that name.
claims() {
    local zookeeper_name=$1
    zookeeper claims "/dlockfs/$2" | grep -c . || true
}

# names FOLDER: what is in there.
names() {
    find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd' '
}

# block HOST [PREFIX]: what its status says of that store.
block() {
    awk -v "RS=" -v "prefix=${2:-}" '(NR == 1) == (prefix == "") && index($0 "\n", prefix == "" ? "" : "prefix=" prefix "\n")' \
        "$dir/$1/.dlockfs/status"
}

# status HOST PREFIX LINE
status() {
    block "$1" "$2" | finds -xF -- "$3"
}

# metric HOST NAME VALUE
metric() {
    grep -qxF -- "$2 $3" "$dir/$1/.dlockfs/metrics"
}

# Each lock is in its store, under the same path, and excludes the other host.
for lock in job cronjob cron/job cron/daily/job; do
    keep "holder-${lock//\//-}" "$dir/A/$lock" flock
    wait_until "$deadline" granted "holder-${lock//\//-}"
    expect_status 1 flock -n "$dir/B/$lock" true
done
expect_equal "claims of job" "1 0" "$(claims zk job) $(claims jobs job)"
expect_equal "claims of cron/job" "0 1" "$(claims zk cron/job) $(claims jobs cron/job)"

# Both are shown together, and each on its own.
expect_equal "queues" "cron/daily/job cron/job cronjob job" \
    "$(sed -n 's/^lock=\([^ ]*\) .*/\1/p' "$dir/B/.dlockfs/queues" | paste -sd' ')"
expect_equal "names" "cron cronjob job" "$(names "$dir/B/.dlockfs/locks")"
expect_equal "names below" "daily job" "$(names "$dir/B/.dlockfs/locks/cron")"
"$dlockctl" --mount "$dir/B" show cron/daily/job >"$dir/show"
grep -q ' held ' "$dir/show"
expect_equal "main store" "2 holders=2" "$(block A | grep -c '^session=connected\|^holders=2') $(block A | grep ^holders)"
for line in session=connected session_timeout_ms=10000 holders=2; do
    status A cron "$line" || fail "no $line: $(block A cron)"
done
"$dlockctl" --mount "$dir/A" doctor >"$dir/doctor" || expect_equal status 1 $?
grep -q "^ok: store: zookeeper://$(zookeeper_address zk)/" "$dir/doctor"
grep -q "^ok: store: cron: zookeeper://$(zookeeper_address jobs)/" "$dir/doctor"
metric A 'dlockfs_acquisitions_total{kind="flock",outcome="granted"}' 2
metric A 'dlockfs_acquisitions_total{kind="flock",outcome="granted",store="cron"}' 2

call excl "$dir/B/cron/open" excl hold
expect excl "excl ok"
expect_status 1 flock -n "$dir/A/cron/open" true
release excl

# Steering finds the claim where it is.
"$dlockctl" --mount "$dir/B" break cron/daily/job --yes >"$dir/broken"
wait_until "$deadline" fenced holder-cron-daily-job
flock -w "$deadline" "$dir/B/cron/daily/job" true

# The server of the one store dies.
keep rival "$dir/B/cron/job" flock
zookeeper_name="jobs" wait_claims cron/job 2
not_fenced holder-cron-job
stop_zookeeper jobs
stopped=$(lease now)
while ! fenced holder-cron-job; do
    [ $(($(lease now) - stopped)) -lt $((deadline * 1000)) ] || fail "not fenced"
    for host in A B A; do
        soon flock -n "$dir/$host/other" true || comes_free "$dir/$host/other"
    done
done
grep -q '^fenced EIO ' "$dir/holder-cron-job.out"
not_granted rival
not_fenced holder-job
not_fenced holder-cronjob
expect_status 1 flock -n "$dir/B/job" true

# What is said of it. Looking for another server of the one store does not break the connection to the other.
status A "" session=connected
metric A dlockfs_reconnects_total 0
for line in session=lost holders=0 fenced=2; do
    wait_until "$deadline" status A cron "$line"
done
metric A dlockfs_session_connected 1
metric A 'dlockfs_session_connected{store="cron"}' 0
metric A dlockfs_fenced_handles_total 0
metric A 'dlockfs_fenced_handles_total{store="cron"}' 2
expect_status 1 "$dlockctl" --mount "$dir/A" doctor >"$dir/doctor"
grep -q '^ok: session: connected' "$dir/doctor"
grep -q '^error: session: cron: lost' "$dir/doctor" || fail "$(<"$dir/doctor")"
expect_status 1 "$dlockctl" --mount "$dir/A" --json doctor >"$dir/json"
expect_equal "JSON" '["connected","lost"]' "$(jq -c '[.status.session, .stores[0].session]' "$dir/json")"
soon ls "$dir/A/.dlockfs/locks" >"$dir/names"
grep -qx cron "$dir/names"
expect_status 74 "$dlockctl" --mount "$dir/A" show cron/job 2>"$dir/err"
expect_status 74 "$dlockctl" --mount "$dir/A" ls >"$dir/ls" 2>"$dir/err"
grep -q '^job  *held' "$dir/ls"
grep -q 'cron/: its store does not answer' "$dir/err" || fail "$(<"$dir/err")"
expect_equal "lines" 1 "$(wc -l <"$dir/err")"
grep -qx 'lock=cron/ error=ETIMEDOUT' "$dir/A/.dlockfs/queues"

# A host stops: the store that answers has its locks back at once, whatever the other does.
stop_dlockfs A
expect_equal "claims of a host that has stopped" 0 "$(claims zk job)"
soon flock -n "$dir/B/job" true

# The server is back: so are the locks below the prefix, and a clean stop gives them back there too.
start_zookeeper jobs
wait_until "$deadline" granted rival
status B cron session=connected
status B cron holders=1
stop_dlockfs B
expect_equal "claims of a host that has stopped" 0 "$(claims jobs cron/job)"
