#!/bin/bash
# Lock files, as .dlockfs and dlockctl show them, and take them away: what one host has made, from the other
# one, with each store. Who made it, where, and since when; locks that are taken on such files beside them.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"
requires command -v jq
requires "$python" -c 'import jsonschema'

# A host with another name.
cat >"$dir/host_a" <<END
#!/bin/sh
exec unshare --uts sh -c 'hostname host-a && exec "\$@"' - "$dlockfs" "\$@"
END
chmod +x "$dir/host_a"

ctl() { # HOST WORD...
    timeout "$deadline" "$dlockctl" --mount "$dir/$1" "${@:2}"
}

# claim KEY FILE POSITION: the value of a key in the line of a claim.
claim() {
    sed -n "s/^position=$3 .* $1=\([^ ]*\).*/\1/p; s/^position=$3 $1=\([^ ]*\).*/\1/p" "$2"
}

# names DIRECTORY: what is in there.
names() {
    find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort | paste -sd' '
}

# cells FILE ROW: a row of a table, its columns divided by "|".
cells() {
    sed -n "$2p" "$1" | sed 's/   */|/g; s/^ *//; s/ *|/|/g; s/|$//'
}

# refused HOST STATUS TEXT WORD...: dlockctl says that, in one line.
refused() {
    expect_status "$2" ctl "$1" "${@:4}" >"$dir/out" 2>"$dir/err"
    expect_equal "lines of ${*:4}" 1 "$(wc -l <"$dir/err")"
    grep -qF -- "$3" "$dir/err" || fail "${*:4}: expected \"$3\", found \"$(<"$dir/err")\""
}

# As etc/dlockctl.schema.json says.
conforms() {
    "$python" - "$source_dir/etc/dlockctl.schema.json" "$1" <<'END'
import json, jsonschema, sys
schema, found = (json.load(open(path)) for path in sys.argv[1:])
jsonschema.validate(found, schema)
END
}

shows() { # HOST NAME POSITIONS: of what .dlockfs/locks has
    [ "$(grep -c ^position= "$dir/$1/.dlockfs/locks/files/$2")" = "$3" ]
}

check_shown() {
    local begin host since
    begin=$(date +%s)
    start maker bash -c 'set -C; cd "$0"; echo $$ >lock; echo made; sleep 1000' "$dir/A/files"
    expect maker made
    at A mkdir job
    at A sh -c 'echo 4711 >job/pid'
    at A ln -s someone@A.1234 'odd name'
    at A chown 65534 job

    # .dlockfs, the same on both.
    for host in A B; do
        cat "$dir/$host/.dlockfs/locks/files/lock" >"$dir/lock.$host"
        cat "$dir/$host/.dlockfs/queues" >"$dir/queues.$host"
        expect_equal "names on $host" "job lock odd name" "$(names "$dir/$host/.dlockfs/locks/files")"
        expect_equal "names in job on $host" ".queue pid" "$(names "$dir/$host/.dlockfs/locks/files/job")"
        expect_equal "job on $host" directory "$(claim kind "$dir/$host/.dlockfs/locks/files/job/.queue" 1)"
        expect_equal "job/pid on $host" file "$(claim kind "$dir/$host/.dlockfs/locks/files/job/pid" 1)"
        [ ! -e "$dir/$host/.dlockfs/locks/files/nothing" ] || fail "$host shows a name that is not there"
    done
    cmp "$dir/lock.A" "$dir/lock.B"
    cmp "$dir/queues.A" "$dir/queues.B"
    expect_equal "the lock" "lock=files/lock claims=1 holders=1" "$(head -n 1 "$dir/lock.B")"
    expect_equal "its maker" "held exclusive file host-a $(pid maker) 0 bash dlockfs" \
        "$(for key in state mode kind host pid uid command client; do claim "$key" "$dir/lock.B" 1; done | paste -sd' ')"
    since=$(claim since "$dir/lock.B" 1)
    if [ "$since" -lt $((begin - 2)) ] || [ "$since" -gt $(($(date +%s) + 2)) ]; then
        fail "made at $since, not after $begin"
    fi
    expect_equal "all names" "lock=files/job lock=files/job/pid lock=files/lock lock=files/odd%20name" \
        "$(sed -n 's/^\(lock=[^ ]*\).*/\1/p' "$dir/queues.B" | paste -sd' ')"
    grep -q ' kind=symlink target=someone@A.1234 host=host-a ' "$dir/queues.B"
    grep -q ' kind=directory .* uid=65534 ' "$dir/queues.B"

    # dlockctl, text and JSON.
    ctl B ls >"$dir/ls"
    expect_equal "ls, title" "NAME|STATE|MODE|KIND|HOLDER|SINCE|WAITERS" "$(cells "$dir/ls" 1)"
    grep -qE '^files/job +held +exclusive +directory +host-a:[0-9]+ mkdir +[0-9]+s +0$' "$dir/ls" || fail "ls: $(<"$dir/ls")"
    grep -qE '^files/lock +held +exclusive +lock file +host-a:'"$(pid maker)"' bash ' "$dir/ls" || fail "ls: $(<"$dir/ls")"
    grep -qE '^files/odd name +held +exclusive +symlink +host-a:[0-9]+ ln ' "$dir/ls" || fail "ls: $(<"$dir/ls")"
    ctl B show 'files/odd name' | finds 'symlink  someone@A.1234  host-a'
    ctl B show files/job | finds -E 'held +exclusive +directory +host-a +[0-9]+ +nobody +mkdir'
    ctl B ls --json >"$dir/ls.json"
    conforms "$dir/ls.json"
    expect_equal "JSON of ls" '["files/job","directory",null] ["files/job/pid","file",null] ["files/lock","file",null] ["files/odd name","symlink","someone@A.1234"]' \
        "$(jq -c '.locks[] | [.name, .claims[0].kind, .claims[0].target]' "$dir/ls.json" | paste -sd' ')"
    ctl B show --json files/lock >"$dir/show.json"
    conforms "$dir/show.json"
    expect_equal "JSON of show" "[\"held\",\"exclusive\",\"host-a\",$(pid maker),0,\"bash\"]" \
        "$(jq -c '.locks[0].claims[0] | [.state, .mode, .host, .pid, .uid, .command]' "$dir/show.json")"
    ctl A doctor --json >"$dir/doctor.json" || true
    expect_equal "doctor" "ok this host has made 4 lock files" \
        "$(jq -r '.checks[] | select(.check == "files") | .result + " " + .message' "$dir/doctor.json")"
}

# Locks that are taken on the file stand behind it, and wait for each other only.
check_queue() {
    start first flock "$dir/A/files/lock" sh -c 'echo held; sleep 1000'
    expect first held
    start second flock "$dir/B/files/lock" sh -c 'echo held; sleep 1000'
    wait_until "$deadline" shows B lock 3
    wait_until "$deadline" shows A lock 3
    expect_equal "states" "file held flock held flock waiting" \
        "$(sed -n 's/^position=.* state=\([a-z]*\) .*kind=\([a-z]*\) .*/\2 \1/p' "$dir/A/.dlockfs/locks/files/lock" | paste -sd' ')"
    ctl A graph >"$dir/graph"
    expect_equal "lines of graph" 2 "$(wc -l <"$dir/graph")"
    grep -qE '^host-a:[0-9]+ flock$' "$dir/graph" || fail "graph: $(<"$dir/graph")"
    grep -qE '^`- .* flock  \[files/lock, exclusive' "$dir/graph" || fail "graph: $(<"$dir/graph")"
    at A sh -c 'echo other >pid'
    start third flock "$dir/A/files/job/pid" sh -c 'echo held; sleep 1000'
    expect third held
    expect_equal "in a directory" "file flock" "$(ctl B show --json files/job/pid | jq -r '.locks[0].claims[].kind' | paste -sd' ')"
    release third
    ctl B break --yes --position 2 files/lock | finds '^took the claim at position 2 away (held'
    expect second held
    release first second
    wait_until "$deadline" shows A lock 1
    # Of a name that is gone, the queue is left.
    start last flock "$dir/A/files/pid" sh -c 'echo held; sleep 1000'
    expect last held
    at A rm pid
    wait_until "$deadline" shows B pid 1
    expect_equal "without the file" flock "$(claim kind "$dir/B/.dlockfs/locks/files/pid" 1)"
    ctl B ls files/pid | finds -E '^files/pid +held +exclusive +host-a:'
    release last
    ctl B wait -w "$deadline" files/pid
}

check_orders() {
    local former as=(setpriv --reuid=65534 --clear-groups)
    refused B 64 'would take the lock file away (for ' break files/lock
    expect_status 77 timeout "$deadline" "${as[@]}" "$dlockctl" --mount "$dir/B" break --yes files/lock 2>"$dir/err"
    grep -q 'another user may' "$dir/err"
    refused B 1 'made it, can be asked on its own host only; to take it away: dlockctl break files/lock' revoke files/lock
    refused A 1 'made it, has ended, or is not known here' revoke files/job
    ctl A revoke files/lock | finds "^asked host-a:$(pid maker) bash$"
    expect_status 143 finish maker
    wait_until "$deadline" grep -q "files/lock: uid=0,pid=[0-9]*,host=host-a asks for the lock file, sent SIGTERM to process" "$dir/A.log"

    # It is waited for, and broken from the other host.
    expect_status 1 ctl A wait -w 0 files/lock
    start waiter "$dlockctl" --mount "$dir/A" wait files/lock
    ctl B break --yes files/lock >"$dir/out"
    grep -qE '^took the lock file away \(for [0-9]+s, made by host-a:[0-9]+ bash\)$' "$dir/out" || fail "break: $(<"$dir/out")"
    expect_status 0 finish waiter
    no_file B lock || fail "lock is there on B after break"
    wait_until "$deadline" no_file A lock
    grep -qE 'files/lock: a lock file of host host-a, process [0-9]+ \(bash\) was broken by process [0-9]+ \(dlockctl\) here' "$dir/B.log" ||
        fail "B says nothing of what was broken"
    wait_until "$deadline" grep -q 'files/lock: lock file taken away, or replaced, by another host' "$dir/A.log"
    refused B 66 'files/lock: nobody holds it' break --yes files/lock

    # A directory, by its owner, from the host that made it, and without what is in it.
    refused A 1 'files/job: the directory is not empty' break --yes files/job
    at A test -e job/pid
    ctl A break --yes files/job/pid | finds '^took the lock file away'
    timeout "$deadline" "${as[@]}" "$dlockctl" --mount "$dir/A" break --yes files/job | finds '^took the directory away'
    wait_until "$deadline" no_file B job
    at B mkdir job
    # Another one of the same name is not meant.
    former=$(claim claim "$dir/B/.dlockfs/locks/files/odd name" 1)
    ctl B break --yes 'files/odd name' | finds '^took the symlink away'
    wait_until "$deadline" at A ln -s y 'odd name'
    expect_equal "break of a former one" ENOENT "$("$python" "$tests/lib/steer.py" break "$dir/B" 'files/odd name' "$former")"
    expect_equal "target" y "$(ctl B show --json 'files/odd name' | jq -r '.locks[0].claims[0].target')"
    at A rm 'odd name'
    at B rmdir job
    expect_equal "left" "" "$(ctl B ls --json | jq -r '.locks[].name')"
}

# What a service has made in the servers, without dlockfs.
check_foreign() {
    requires "$python" -c 'import kazoo'
    start service "$python" "$tests/system/files/ephemeral.py" "$(zookeeper_address)" /dlockfs/files/job "of a service"
    expect service made
    expect_equal "of another client" '["held","file",null,null,null,"other"]' \
        "$(ctl B show --json files/job | jq -c '.locks[0].claims[0] | [.state, .kind, .host, .pid, .uid, .client]')"
    ctl B ls | finds -E '^files/job +held +exclusive +lock file +another client '
    ctl B break --yes files/job | finds 'made by another client'
    wait_until "$deadline" no_file A job
    release service
}

for kind in zookeeper etcd; do
    "start_$kind"
    files_config files 'on_revoke = SIGTERM' 'steal = no'
    dlockfs=$dir/host_a start_dlockfs A --config "$dir/files.ini" --session-timeout 12s
    start_dlockfs B --config "$dir/files.ini" --session-timeout 12s
    check_shown
    check_queue
    check_orders
    [ "$kind" = etcd ] || check_foreign
    stop_dlockfs A
    stop_dlockfs B
    rm "$dir/A.log" "$dir/B.log"
done
