#!/bin/bash
# dlockctl run --once and --every: one success for each key, and in each period, on three hosts whose clocks differ, on ZooKeeper and
# etcd, with hosts killed and runs that fail or lose their lock in between. What was run outlives hosts, daemons and servers.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"

preload=$build/tests/system/wall_clock.so
requires test -e "$preload"
requires type -P etcd
timeout=6s
rounds=10
period=1h

# start_hosts: A is right, B's clock is 30 s ahead, C's 30 s behind.
start_hosts() {
    local host
    for host in A B C; do
        start_host "$host"
    done
}

clock_of() {
    case $1 in
        B) echo 30 ;;
        C) echo -30 ;;
        *) echo 0 ;;
    esac
}

# on_clock_of HOST COMMAND...: as a process of that host. A sanitizer minds whatever is loaded before it.
on_clock_of() {
    clock_of "$1" >"$dir/clock.$1"
    LD_PRELOAD=$preload TEST_WALL_CLOCK=$dir/clock.$1 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 "${@:2}"
}

start_host() {
    on_clock_of "$1" launch_dlockfs "$1" --session-timeout "$timeout" --config "$dir/dlockfs.ini"
    wait_until "$deadline" mount_settled "$1"
}

# run_on HOST OPTION... NAME COMMAND...
run_on() {
    on_clock_of "$1" "$dlockctl" --mount "$dir/$1" run "${@:2}"
}

# expect_skipped STATUS HOST OPTION...: the command does not run.
expect_skipped() {
    local status=0 output
    output=$(run_on "${@:2}" sh -c 'echo ran' 2>&1) || status=$?
    expect_equal "run ${*:2}" "skipped $1" "$output $status"
}

expect_run() {
    expect_equal "run $*" ran "$(run_on "$@" sh -c 'echo ran' 2>&1)"
}

# reads HOST: how often its daemon has read, and placed, anything in the store.
asked() {
    sed -n "s/^dlockfs_store_operation_seconds_count{operation=\"$2\"} //p" "$dir/$1/.dlockfs/metrics"
}

# records NAME: of the lock, a line each, as the store has them; set_records NAME TEXT.
records() {
    case $store in
        etcd:*) etcd get --print-value-only "/dlockfs/.dlockfs/runs/$1" | sed 1d ;;
        *) zookeeper data "/dlockfs/.dlockfs/runs/$1" ;;
    esac | grep .
}

set_records() {
    case $store in
        etcd:*) etcd put "/dlockfs/.dlockfs/runs/$1" "$(etcd get --print-value-only "/dlockfs/.dlockfs/runs/$1" | head -n 1)"$'\n'"$2" >/dev/null ;;
        *) zookeeper set "/dlockfs/.dlockfs/runs/$1" "$2" ;;
    esac
}

# age NAME SECONDS: the runs of the lock were that much earlier.
age() {
    set_records "$1" "$(records "$1" | awk -v ms="$(($2 * 1000))" '{ split($1, start, "="); $1 = sprintf("start=%.0f", start[2] - ms); print }')"
}

count_ran() {
    grep -c . "$dir/$1.ran" 2>/dev/null || true
}

# key: what has run is skipped, by one read; a failed run is not one that succeeded, nor one of another key.
check_keys() {
    local before_reads before_places
    expect_status 3 run_on A --once monday job sh -c 'exit 3'
    expect_run A --once monday job
    before_reads=$(asked B read)
    before_places=$(asked B place)
    expect_skipped 0 B --once monday job
    expect_equal "reads of a skipped --once" 1 $(($(asked B read) - ${before_reads:-0}))
    expect_equal "claims of a skipped --once" "${before_places:-}" "$(asked B place)"
    expect_skipped 7 C --once monday -E 7 job
    expect_equal quiet "" "$(run_on C -q --once monday job true 2>&1)"
    expect_run C --once tuesday job
    expect_equal "records" "3 monday,0 monday,0 tuesday" \
        "$(records job | sed 's/.*status=\([0-9]*\) .*key=\(.*\)/\1 \2/' | paste -sd,)"
    if find "$dir/A/.dlockfs/locks" -maxdepth 1 -name .dlockfs | finds .; then
        fail "the records are shown among the locks"
    fi
}

# A standby waits for the lock, and is not needed; -n does not wait.
check_standby() {
    on_clock_of A start holder "$dlockctl" --mount "$dir/A" run --once wednesday job sh -c 'echo held; while ! [ -e "$1" ]; do sleep 0.05; done' - "$dir/go.$store_name"
    expect holder held
    on_clock_of B start standby "$dlockctl" --mount "$dir/B" run --once wednesday job echo ran
    wait_claims job 2
    expect_skipped 0 C -n --once wednesday job
    touch "$dir/go.$store_name"
    finish holder
    finish standby
    expect_equal "the standby" skipped "$(<"$dir/standby.out")"
    # It is needed if the first one fails, or its lock is taken away, or its host dies.
    on_clock_of A start holder "$dlockctl" --mount "$dir/A" run --once thursday job sh -c 'echo held; while ! [ -e "$1" ]; do sleep 0.05; done; exit 4' - "$dir/fail.$store_name"
    expect holder held
    on_clock_of B start standby "$dlockctl" --mount "$dir/B" run --once thursday job echo ran
    wait_claims job 2
    touch "$dir/fail.$store_name"
    expect_status 4 finish holder
    expect standby ran
    finish standby
    on_clock_of A start holder "$dlockctl" --mount "$dir/A" run --on-lost ignore --once friday job sh -c 'echo held; while ! [ -e "$1" ]; do sleep 0.05; done' - "$dir/lost.$store_name"
    expect holder held
    "$dlockctl" --mount "$dir/A" break --yes job >"$dir/break.out"
    expect_run C --once friday job
    touch "$dir/lost.$store_name"
    expect_status 75 finish holder
    on_clock_of A start holder "$dlockctl" --mount "$dir/A" run --once saturday job sh -c 'echo held; exec sleep 1000'
    expect holder held
    on_clock_of B start standby "$dlockctl" --mount "$dir/B" run --once saturday job echo ran
    wait_claims job 2
    kill_dlockfs A
    expect standby ran
    finish standby
    release holder
    start_host A
    expect_skipped 0 A --once saturday job
}

# Somebody takes the claim away in the store, and the host may not have noticed when the command ends.
check_stolen() {
    start holder "$dlockctl" --mount "$dir/A" run --on-lost ignore --once sunday job sh -c 'echo held; while ! [ -e "$1" ]; do sleep 0.05; done' - "$dir/stolen.$store_name"
    expect holder held
    case $store in
        etcd:*) etcd del --prefix /dlockfs/job/ >"$dir/del.out" ;;
        *) zookeeper delete-claims /dlockfs/job ;;
    esac
    touch "$dir/stolen.$store_name"
    expect_status 75 finish holder
    expect_equal "violation: records of it" "" "$(records job | grep 'key=sunday' || true)"
    expect_run B --once sunday job
}

# Ten periods, in each of which all hosts start the job at about the same time, in some while one of them dies: the clocks of the hosts
# do not matter.
check_periods() {
    local round host winner
    for ((round = 1; round <= rounds; round++)); do
        for host in A B C; do
            on_clock_of "$host" start "cron$host" "$dlockctl" --mount "$dir/$host" run -q --every "$period" periodic \
                sh -c 'echo "$1" >>"$2"; sleep 0.05' - "$host" "$dir/$store_name.ran"
        done
        for host in A B C; do
            finish "cron$host"
        done
        expect_equal "violation: successes after $round periods" "$round" "$(count_ran "$store_name")"
        winner=$(tail -n 1 "$dir/$store_name.ran")
        if [ $((round % 4)) = 2 ]; then
            kill_dlockfs "$winner"
            start_host "$winner"
        fi
        age periodic 3600
    done
    expect_equal "records" "$rounds" "$(records periodic | grep -c 'every=3600000 status=0 ')"
    # A period is nearly over.
    expect_run A --every "$period" nearly
    age nearly 3100
    expect_skipped 0 B --every "$period" nearly
    age nearly 200
    expect_run B --every "$period" nearly
    # A start that is far ahead is no start; nor is what makes no sense a run.
    age nearly -7200
    expect_run A --every "$period" nearly
    set_records nearly $'start=1 took=1 status=0 key=now\nstart=\033[2J\n\nstart=99999999999999999999 took=1 status=0 key=later\nfoo'
    expect_skipped 0 A --once now nearly
    expect_run A --once later nearly
}

printf '[locks "kept"]\nkeep = 10s\nhandoff = 5\n[locks "seats"]\nslots = 2\n' >"$dir/dlockfs.ini"

# Daemons that are killed while a job runs, and after it, and go on.
check_kills() {
    start_kept "$1"
    start holder "$dlockctl" --mount "$dir/$1" run --once killed job sh -c 'echo held; while ! [ -e "$1" ]; do sleep 0.05; done' - "$dir/go.$1"
    expect holder held
    crash "$1"
    restart_kept "$1"
    touch "$dir/go.$1"
    finish holder
    crash "$1"
    expect_skipped 0 "$1" --once killed job
    expect_run "$1" --once other job
    expect_run "$1" --every "$period" job-too
    expect_skipped 0 "$1" --every "$period" job-too
    stop_kept "$1"
}

# A claim that is kept, or passed on, is of its holder only.
check_kept() {
    expect_run A --once one kept
    expect_skipped 0 A --once one kept
    expect_run A --once two kept
    expect_skipped 0 B --once two kept
    expect_status 64 run_on A --once one seats true 2>"$dir/err"
    grep -q 'seats: several may hold it at a time' "$dir/err" || fail "$(<"$dir/err")"
    expect_equal "violation: tokens" "$(records kept | sed 's/.*token=\([0-9]*\) .*/\1/' | sort -un)" \
        "$(records kept | sed 's/.*token=\([0-9]*\) .*/\1/')"
}

check_all() {
    start_hosts
    check_keys
    check_standby
    check_stolen
    check_kept
    check_periods
    for host in A B C; do
        stop_dlockfs "$host"
    done
}

store_name=zookeeper
start_zookeeper
check_all
restart_zookeeper zk
start_host A
expect_skipped 0 A --once monday job
expect_equal "in the queue" "" "$(zookeeper children /dlockfs/job)"
stop_dlockfs A
check_kills K

store_name=etcd
start_etcd
check_all

store=local:
check_kills L
