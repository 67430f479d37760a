#!/bin/bash
# dlockctl on real mounts of two hosts: what ls, show, wait, top and doctor say of locks that are really held and waited for.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/terminal.sh
. "$tests/lib/terminal.sh"
requires command -v jq

start_zookeeper
start_dlockfs A
start_dlockfs B

on_b() {
    "$dlockctl" --mount "$dir/B" "$@"
}

expect_equal "nothing is held" 0 "$(on_b ls --json | jq '.locks | length')"
mkdir "$dir/A/cron"
hold backup "$dir/A/cron/backup"
hold reader-a -s "$dir/A/odd name"
expect backup held
expect reader-a held
hold reader-b -s "$dir/B/odd name"
expect reader-b held
hold waiter "$dir/A/cron/backup"
wait_claims cron/backup 2
start command "$dlockctl" run -v "$dir/A/cron/backup" true
wait_claims cron/backup 3
call records "$dir/A/records" open w:0-9 r:20-29 hold
expect records "r:20-29 ok"

expect_equal "ls" "cron/backup held exclusive 2,odd name held shared 0,records held exclusive 0" \
    "$(on_b ls --json | jq -r '.locks[] | "\(.name) \(.claims[0].state) \(.claims[0].mode) \(.waiters)"' | paste -sd,)"
on_b ls 'odd*' | finds -E "^odd name +held +shared +$(hostname):[0-9]+ flock \+1 more +[0-9]+s +0$"
expect_equal "show" "held $(pid backup) flock,waiting $(pid waiter) flock,waiting $(pid command) dlockctl" \
    "$(on_b show --json cron/backup | jq -r '.locks[0].claims[] | "\(.state) \(.pid) \(.command)"' | paste -sd,)"
expect_equal "ranges" "record w0-9,record r20-29" \
    "$(on_b show --json records | jq -r '.locks[0].claims[] | "\(.kind) \(.ranges)"' | paste -sd,)"
expect_status 66 on_b show cron 2>"$dir/err"
expect_status 66 on_b show nothing 2>"$dir/err"
expect_equal "the session, the user" "true root" \
    "$(on_b show --json records | jq -r '.locks[0].claims[0] | "\(.session | startswith("0x")) \(.user)"')"

# A lock that has another one below it.
hold parent "$dir/A/parent"
expect parent held
mkdir "$dir/B/parent"
hold child "$dir/B/parent/child"
expect child held
on_b show parent | finds ' flock '
on_b show parent/child | finds ' flock '
# A lock of the name under which .dlockfs shows the queue of that one.
hold queue "$dir/B/parent/.queue"
expect queue held
on_b ls | finds '^parent/\.queue '
expect_status 64 on_b wait -w 0 parent/.queue 2>"$dir/err"
expect_status 64 on_b break --yes parent/.queue 2>"$dir/err"
wait_claims parent 1
release parent child queue
expect_status 0 "$dlockctl" run -v "$dir/B/parent/.queue" true

# run -v says where it stands.
grep -q "^dlockctl: cron/backup: 3 of 3 in the queue; held by $(hostname):$(pid backup) flock" "$dir/command.out" ||
    wait_until "$deadline" grep -q "^dlockctl: cron/backup: 3 of 3 in the queue; held by" "$dir/command.out"

# wait takes no place in the queue, and ends when all are gone.
start waits "$dlockctl" --mount "$dir/B" wait -v cron/backup
wait_until "$deadline" grep -q '^dlockctl: cron/backup: 3 in the queue' "$dir/waits.out"
wait_claims cron/backup 3
release backup waiter
expect_status 0 finish command
expect_status 0 finish waits

"$dlockctl" --mount "$dir/B" doctor --json >"$dir/doctor.json" || fail "$(<"$dir/doctor.json")"
expect_equal "doctor" "connected" "$(jq -r .status.session "$dir/doctor.json")"

start_terminal
type_line "clear; ${dlockctl@Q} --mount ${dir@Q}/B top"
expect_screen '^odd name '
expect_screen '^2 locks, 4 holders, 0 waiters'
hold late "$dir/A/late"
expect_screen '^late .*held +exclusive '
keys q
expect_screen '\$$'

# Without the servers: an answer in time, with a status of its own. wait goes on.
start waits "$dlockctl" --mount "$dir/B" wait late
pause zk
expect_status 74 timeout 60 "$dlockctl" --mount "$dir/B" ls 2>"$dir/err"
grep -q '^dlockctl: queues: the store does not answer' "$dir/err"
alive waits
resume zk
release late
expect_status 0 finish waits
