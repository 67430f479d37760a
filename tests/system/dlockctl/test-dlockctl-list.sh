#!/bin/bash
# dlockctl ls, show and wait: what they say of known queues, as tables, cut to a terminal, and as JSON; and their errors, each of
# them one line with a status of its own.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/terminal.sh
. "$tests/lib/terminal.sh"
# shellcheck source=../../lib/static_mount.sh
. "$tests/lib/static_mount.sh"
requires command -v jq
requires "$python" -c 'import jsonschema'

make_static_mount

ctl() {
    "$dlockctl" --mount "$dir/static" "$@"
}

# cells FILE ROW: a row of a table, its columns divided by "|".
cells() {
    sed -n "$2p" "$1" | sed 's/   */|/g; s/|$//'
}

ctl ls >"$dir/ls.out"
expect_equal "lines of ls" 4 "$(wc -l <"$dir/ls.out")"
expect_equal "ls, title" "NAME|STATE|MODE|HOLDER|SINCE|WAITERS" "$(cells "$dir/ls.out" 1)"
expect_equal "ls, held" "cron/backup|held|exclusive|web1:4711 backup.sh|1d03h|3" "$(cells "$dir/ls.out" 2)"
expect_equal "ls, shared" "cron/sub|held|shared|web1:1 a +1 more|1h23m|0" "$(cells "$dir/ls.out" 3)"
expect_equal "ls, waiting" 'odd\x0Aname \\\xFF|waiting|exclusive|1d03h|1' "$(cells "$dir/ls.out" 4)"
expect_equal "ls of a pattern" 2 "$(ctl ls 'cron/*' | grep -c ^cron)"
expect_equal "ls of a folder" 2 "$(ctl ls cron | grep -c ^cron)"
expect_equal "ls, * is no slash" 1 "$(ctl ls '*' | grep -c ^odd)"
expect_equal "ls of nothing" 1 "$(ctl ls nothing | wc -l)"

ctl show cron/backup >"$dir/show.out"
expect_equal "show, title" "POS|STATE|MODE|KIND|HOST|PID|USER|COMMAND|SINCE|RANGES|CLIENT|SESSION|CLAIM" \
    "$(cells "$dir/show.out" 1)"
expect_equal "show, first" "  1|held|exclusive|flock|web1|4711|root|backup.sh|1d03h|dlockfs|0x1000|_c_1" \
    "$(cells "$dir/show.out" 2 | sed 's/^|1/  1/; s/^  *1/  1/')"
grep -qF 'a-very-long-name-of-a-host.example.org  4194303  4242424  some \x1B[31mcommand\x0A' "$dir/show.out"
grep -q '3  waiting  shared .* another client .* 1m[0-9]*s ' "$dir/show.out"
expect_equal "show of a folder" 3 "$(ctl show cron/sub | wc -l)"
ctl show "$(printf 'odd\nname \\\377')" | finds web3

# Colours: only where asked for, or on a terminal.
if grep $'\033' "$dir/show.out" "$dir/ls.out"; then
    fail "colours or worse in a file"
fi
ctl --color=always ls | finds $'\033\\[32mheld'
expect_status 64 ctl --color=red ls 2>"$dir/err"
grep -q 'expected auto, always or never' "$dir/err"

# On a terminal of 80 columns, no line is wrapped. What a command line shows of itself is not what it writes: e''nd.
start_terminal
type_line "clear; ${dlockctl@Q} --mount ${dir@Q}/static show cron/backup | cat; ${dlockctl@Q} --mount ${dir@Q}/static ls >/dev/null"
expect_screen '^  4  waiting'
type_line "clear; cd ${dlockctl%/*}; M=$dir/static; clear; ./dlockctl --mount \$M show cron/backup; ./dlockctl --mount \$M ls; echo e''nd-1"
expect_screen '^end-1'
screen >"$dir/screen"
expect_equal "lines of show" 5 "$(grep -cE '^ *(POS|[1-4]) ' "$dir/screen")"
grep -qE '^  2  waiting  exclusive  record  .*~  4194303 ' "$dir/screen" || fail "not cut: $(<"$dir/screen")"
expect_equal "lines of ls" 4 "$(sed -n '/^NAME/,/^end/{/^end/!p}' "$dir/screen" | wc -l)"
terminal capture-pane -p -e | finds $'\033\\[32m *held' || fail "no colours on a terminal"
type_line "clear; NO_COLOR=1 ./dlockctl --mount \$M ls; echo e''nd-2"
expect_screen '^end-2'
if terminal capture-pane -p -e | grep $'\033\\[32m'; then
    fail "NO_COLOR is not respected"
fi
type_line "clear; ./dlockctl --mount \$M --wide show cron/backup; echo e''nd-3"
expect_screen '^end-3'
expect_screen 'a-very-long-name-of-a-host.example.org'

# JSON.
expect_equal "JSON of ls" "$dir/static,3" "$(ctl --json ls | jq -r '[.mount, (.locks | length)] | @csv' | tr -d '"')"
ctl show --json cron/backup >"$dir/show.json"
expect_equal "JSON of show" '["cron/backup","cron/backup",1,3,4]' \
    "$(jq -c '.locks[0] | [.name, .name_encoded, .holders, .waiters, (.claims | length)]' "$dir/show.json")"
expect_equal "JSON of a claim" '[2,"waiting","exclusive","record","w0-63,r100-199",4194303,4242424,"some \u001b[31mcommand\n","_c_2"]' \
    "$(jq -c '.locks[0].claims[1] | [.position, .state, .mode, .kind, .ranges, .pid, .uid, .command, .claim]' "$dir/show.json")"
expect_equal "JSON of another client" '[null,null,null,null,"other"]' \
    "$(jq -c '.locks[0].claims[2] | [.kind, .host, .pid, .user, .client]' "$dir/show.json")"
expect_equal "JSON of odd bytes" 'odd%0Aname%20%5C%FF' "$(ctl ls --json 'odd*' | jq -r '.locks[0].name_encoded')"

# As etc/dlockctl.schema.json says.
conforms() {
    ctl --json "$@" >"$dir/found.json"
    "$python" - "$source_dir/etc/dlockctl.schema.json" "$dir/found.json" <<'END_PYTHON'
import json, jsonschema, sys
schema, found = (json.load(open(path)) for path in sys.argv[1:])
jsonschema.validate(found, schema)
END_PYTHON
}
conforms ls
conforms show cron/backup
conforms ls nothing

# wait: free, held, and becoming free.
ctl wait free
expect_equal "JSON of wait" '["free",true]' "$(ctl wait --json free | jq -c '[.name, .free]')"
ctl wait nobody/has/it
ctl wait cron/backup/below
begin=$(now_ms)
expect_status 1 ctl wait -w 0.5 cron/sub
[ $(($(now_ms) - begin)) -ge 500 ] || fail "wait -w 0.5 ended too early"
expect_equal "JSON of wait" false "$(ctl wait -w 0 --json cron/sub | jq -c .free || true)"
start waiter "$dlockctl" --mount "$dir/static" wait -v cron/backup
expect waiter "dlockctl: cron/backup: 4 in the queue; held by web1:4711 backup.sh"
sed -i '/^position/d' "$dir/static/.dlockfs/locks/cron/backup"
expect_status 0 finish waiter

# wrong STATUS TEXT ARGUMENT...: this status, and one line with the text in it.
wrong() {
    local status=$1 text=$2
    shift 2
    expect_status "$status" "$dlockctl" "$@" >"$dir/out" 2>"$dir/err"
    expect_equal "output of $*" "" "$(<"$dir/out")"
    expect_equal "lines of $*" 1 "$(wc -l <"$dir/err")"
    grep -qF -- "$text" "$dir/err" || fail "$*: $(<"$dir/err")"
    grep -q '^dlockctl: [^:]*: .*; ' "$dir/err" || fail "$*: not \"what: why; what would be right\": $(<"$dir/err")"
}

wrong 66 'free: nobody holds it' --mount "$dir/static" show free
wrong 66 'x\x0Ay: nobody holds it' --mount "$dir/static" show $'x\ny'
wrong 66 'nobody' --mount "$dir/static" revoke free
wrong 66 'nobody' --mount "$dir/static" break free --yes
wrong 66 'nobody is at position 9' --mount "$dir/static" break --position 9 --yes cron/sub
wrong 64 'say --yes' --mount "$dir/static" break cron/sub
wrong 72 'knows no such order' --mount "$dir/static" break cron/sub --yes
wrong 72 'is no mount' --mount "$dir" ls
wrong 72 'No such file' --mount "$dir/nowhere" ls
wrong 64 'is not below' --mount "$dir/static" show /etc/passwd
wrong 64 'empty component' --mount "$dir/static" show a//b
wrong 64 '".."' --mount "$dir/static" show ../a
wrong 64 'reserved' --mount "$dir/static" show .dlockfs/status
wrong 64 'is empty' --mount "$dir/static" show ""
for name in cron/sub/.queue cron/backup/.queue a/.queue/b; do
    for order in show "wait -w 0" revoke "break --yes"; do
        # shellcheck disable=SC2086 # an order is several words
        wrong 64 "$name: the lock cannot be looked at" --mount "$dir/static" $order "$name"
    done
done
ctl wait .queue
ctl wait a/.queues/.queue-b
wrong 64 'is no command' shwo
wrong 64 'command: is missing'
wrong 64 'a word is missing' show
wrong 64 'one word too many: b' show a b
wrong 64 '--nonsense: is no option' ls --nonsense
wrong 64 '-w: has no argument' wait -w
wrong 64 'is no time' wait -w soon job
wrong 64 'such as 9' check nine
wrong 64 'no such action' run --on-lost=pray job true
wrong 64 'a command is missing' run job --
wrong 64 'is for a terminal' top
rm "$dir/static/.dlockfs/queues"
wrong 72 'there is no .dlockfs/queues' --mount "$dir/static" ls
chmod 755 "$dir/static"
if [ "$(id -u)" -eq 0 ]; then
    touch "$dir/static/.dlockfs/queues"
    chmod 600 "$dir/static/.dlockfs/queues"
    expect_status 77 setpriv --reuid=65534 --clear-groups "$dlockctl" --mount "$dir/static" ls 2>"$dir/err"
fi

# What this host keeps is free; what another one may keep is not known to be. Those who follow wait, and have no claim.
{
    echo "lock=kept claims=1 holders=0 kept=1"
    claim 1 kept exclusive 50 host=web1 client=dlockfs
} >"$dir/static/.dlockfs/locks/kept"
{
    echo "lock=far claims=2 holders=1 followers=1"
    claim 1 held exclusive 50 maybe_kept=yes maybe_former=yes kind=flock host=web2 pid=7 uid=0 command=x client=dlockfs
    claim 2 waiting exclusive 5 kind=flock host=web1 pid=8 uid=0 command=y client=dlockfs
    echo "position=2.1 state=waiting mode=exclusive kind=flock host=web1 pid=9 uid=0 command=z client=dlockfs"
} >"$dir/static/.dlockfs/locks/far"
cat "$dir"/static/.dlockfs/locks/{kept,far} >"$dir/static/.dlockfs/queues"
ctl ls >"$dir/ls.out"
expect_equal "ls, kept" "kept|kept|exclusive|web1|50s|0" "$(cells "$dir/ls.out" 2 | sed 's/|5[0-9]s|/|50s|/')"
expect_equal "ls, perhaps kept" "far|kept?|exclusive|web2:7? x|50s|2" "$(cells "$dir/ls.out" 3 | sed 's/|5[0-9]s|/|50s|/')"
ctl show far >"$dir/show.out"
expect_equal "show, who follows" "1|kept?|exclusive|flock|web2|7?,2|waiting|exclusive|flock|web1|8,2.1|waiting|exclusive|flock|web1|9" \
    "$(for row in 2 3 4; do cells "$dir/show.out" "$row" | sed 's/^[ |]*//' | cut -d'|' -f1-6; done | paste -sd,)"
expect_equal "JSON of what is kept" '[["kept",0,1,0,[["kept",false,false,null]]],["far",1,0,2,[["held",true,true,null],["waiting",false,false,null],["waiting",false,false,1]]]]' \
    "$(ctl ls --json | jq -c '[.locks[] | [.name, .holders, .kept, .waiters, [.claims[] | [.state, .maybe_kept, .maybe_former, .follower]]]]')"
conforms ls
ctl wait -w 0 kept
expect_status 1 ctl wait -w 0 far
wrong 64 '(kept, exclusive, for ' --mount "$dir/static" break kept
wrong 66 'expected 1 to 2' --mount "$dir/static" break --position 3 --yes far
wrong 72 'knows no such order' --mount "$dir/static" revoke kept
expect_status 1 timeout 5 "$dlockctl" --mount "$dir/static" wait -w 0 -v far 2>"$dir/err"
grep -qx 'dlockctl: far: 3 in the queue; held or kept by web2:7? x' "$dir/err" || fail "$(<"$dir/err")"

# Lines that make no sense are left out, and counted.
printf 'lock=a\nposition=1 state=held mode=shared\nposition=2 state=new mode=shared\n\001\002\n' >"$dir/static/.dlockfs/queues"
expect_equal "with bad lines" "a|held|shared|unknown host|0" \
    "$(ctl ls 2>"$dir/err" >"$dir/ls.out"; cells "$dir/ls.out" 2)"
grep -q 'left out 2 lines of the mount' "$dir/err"
