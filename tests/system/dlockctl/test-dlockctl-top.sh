#!/bin/bash
# dlockctl top on a terminal of 80 columns: what it shows, that it goes with the queues and the size, and that q ends it.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/terminal.sh
. "$tests/lib/terminal.sh"
# shellcheck source=../../lib/static_mount.sh
. "$tests/lib/static_mount.sh"

make_static_mount
start_terminal
type_line "cd ${dlockctl%/*}; M=$dir/static; clear"
type_line "./dlockctl --mount \$M top"
expect_screen '^NAME  '
screen >"$dir/screen"
grep -qE "^$dir/static  session connected  lease 8400 ms" "$dir/screen" || fail "$(<"$dir/screen")"
grep -qE '^3 locks, 3 holders, 4 waiters$' "$dir/screen"
expect_equal "order" 'cron/backup,odd\x0Aname,cron/sub' "$(sed 1,4d "$dir/screen" | awk 'NF { print $1 }' | paste -sd,)"
grep -qE '^cron/backup +3  held     exclusive  web1:4711 backup.sh +1d03h$' "$dir/screen" || fail "$(<"$dir/screen")"

# It follows.
printf 'lock=new claims=1\nposition=1 state=held mode=shared host=web9 pid=9 command=z\n' >>"$dir/static/.dlockfs/queues"
expect_screen '^new +0  held +shared +web9:9 z'
printf 'lock=kept claims=1\nposition=1 state=kept mode=shared host=web9\n' >>"$dir/static/.dlockfs/queues"
expect_screen '^kept +0  kept +shared +web9'
expect_screen '^5 locks, 4 holders, 4 waiters, 1 kept$'
expect_screen '^NAME +WAITERS  STATE +MODE +HOLDER'
printf 'lock=files/job claims=1\nposition=1 state=held mode=exclusive kind=directory host=web9 pid=7 command=mkdir\n' >>"$dir/static/.dlockfs/queues"
expect_screen '^files/job +0  held +exclusive  directory  web9:7 mkdir'
expect_screen '^NAME +WAITERS  STATE +MODE +KIND +HOLDER'
rm "$dir/static/.dlockfs/queues"
expect_screen '^The queues cannot be read: No such file'
make_static_mount
expect_screen '^3 locks'

# A store below a prefix has a line of its own; one that does not answer is told.
printf '\nprefix=cron\nstore=zookeeper://zk9:2181/jobs not connected\nsession=lost\n' >>"$dir/static/.dlockfs/status"
echo 'lock=cron/ error=ETIMEDOUT' >>"$dir/static/.dlockfs/queues"
expect_screen '^cron  session lost  lease - ms  zookeeper://zk9:2181/jobs'
expect_screen '^3 locks, 3 holders, 4 waiters; a store does not answer$'
make_static_mount
expect_screen '^3 locks, 3 holders, 4 waiters$'

# Narrow, then wide.
terminal set-option -g window-size manual
terminal resize-window -x 60 -y 10
expect_screen '^cron/back(up|~) +3  held     exclusive  web1:4711 b[a-z]*~ +1d03h$'
terminal resize-window -x 120 -y 30
expect_screen '^cron/backup +3  held     exclusive  web1:4711 backup.sh +1d03h$'
keys q
expect_screen '\$$'
type_line 'echo status-$?'
expect_screen '^status-0'
type_line exit
