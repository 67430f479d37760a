#!/bin/bash
# What etcd refuses is told in one line and gives ENOLCK, nothing hangs, and all works again when it is mended: no space, a wrong
# password, no user, a role that is taken away, or is for other keys.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/kept.sh
. "$tests/lib/kept.sh"

# refuses HOST: calls that wait and calls that do not.
refuses() {
    call refused "$dir/$1/job" open ex-nb ex w-nb:0-0 close
    expect_status 0 finish refused 30
    expect_equal "calls on $1" "open ok,ex-nb ENOLCK,ex ENOLCK,w-nb:0-0 ENOLCK,close ok" "$(paste -sd, "$dir/refused.out")"
}

# told HOST TEXT: the log of the host says so, in one line.
told() {
    wait_until "$deadline" grep -qF -- "$2" "$dir/$1.log"
    expect_equal "lines of $1 with: $2" 1 "$(grep -cF -- "$2" "$dir/$1.log")"
}

filler=$(head -c 500000 /dev/zero | tr '\0' x)
fill() {
    ! printf %s "$filler" | etcd put "filler-$RANDOM" >/dev/null 2>"$dir/fill.err" && grep -q 'space exceeded' "$dir/fill.err"
}

asks() {
    call asks "$dir/B/long" open ex-nb close
    expect_status 0 finish asks
    said asks "ex-nb EAGAIN" || fail "not held: $(<"$dir/asks.out")"
}

removed() {
    rm "$dir/B/files/pid" 2>"$dir/rm.err"
}

no_space() {
    etcd_options=(--quota-backend-bytes $((2 * 1024 * 1024)))
    start_etcd small
    start_dlockfs A --session-timeout 5s
    printf '%s\n' '[mount]' 'directories = files' '[locks "files"]' 'style = file' >"$dir/B.ini"
    start_kept B --session-timeout 10s --config "$dir/B.ini" -v
    hold holder "$dir/A/held"
    hold long-holder "$dir/B/long"
    expect holder held
    expect long-holder held
    echo 1 >"$dir/B/files/pid"
    wait_until "$deadline" survives B yes
    wait_until "$deadline" fill
    refuses A
    told A 'space'
    # Who holds goes on holding, longer than the session lasts by itself, and can let go.
    sleep 6
    expect_status 1 flock -n "$dir/A/held" true
    if grep 'lock lost' "$dir/A.log"; then
        fail "lost for want of space"
    fi
    release holder
    # Who has to connect anew holds on, too, for as long as it takes.
    restart_etcd small
    told B 'the servers have no space left'
    asks
    sleep 12
    asks
    restart_etcd small
    # Who has no session yet is told so, and not that there is no answer.
    start_dlockfs C --session-timeout 5s
    told C 'the servers have no space left'
    before=$(gone_on B)
    send_signal B USR2
    wait_until "$deadline" gone_on_more B "$before"
    crash B
    sleep 12
    asks
    "$dlockctl" --mount "$dir/B" doctor >"$dir/doctor" || true
    grep -q 'the servers have no space left' "$dir/doctor" || fail "$(<"$dir/doctor")"
    refuses B
    expect_status 1 rm "$dir/B/files/pid" 2>"$dir/rm.err"
    expect_equal "warnings of C" 0 "$(grep -c 'trying on' "$dir/C.log" || true)"
    revision=$(etcd endpoint status --write-out=json | sed 's/.*"revision":\([0-9]*\).*/\1/')
    etcd del --prefix filler >/dev/null
    etcd compact $((revision + 1)) >/dev/null
    etcd defrag >/dev/null
    etcd alarm disarm >/dev/null
    comes_free "$dir/A/job"
    comes_free "$dir/A/held"
    comes_free "$dir/B/job"
    comes_free "$dir/C/job"
    expect_status 1 flock -n "$dir/A/long" true
    expect_equal "the file" 1 "$(<"$dir/B/files/pid")"
    wait_until "$deadline" removed
    if grep 'lost' "$dir/B.log"; then
        fail "lost for want of space"
    fi
    release long-holder
    comes_free "$dir/A/long"
    stop_kept B
    stop_dlockfs C
    stop_dlockfs A
}

users() {
    local host root
    start_etcd
    etcd_add_users
    etcd user add other:0ther >/dev/null
    etcd_add_role others /others/
    etcd user grant-role other others >/dev/null
    etcd auth enable >/dev/null
    root=(--user root:r00t)
    umask 077
    printf 's3cret\n' >"$dir/right.password"
    printf 'wrong' >"$dir/wrong.password"
    printf '0ther' >"$dir/other.password"
    umask 022
    start_dlockfs right --session-timeout 5s -o "etcd_user=host,etcd_password_file=$dir/right.password"
    comes_free "$dir/right/job"
    hold holder "$dir/right/job"
    expect holder held
    start_dlockfs wrong --session-timeout 5s -o "etcd_user=host,etcd_password_file=$dir/wrong.password"
    start_dlockfs nobody --session-timeout 5s
    start_dlockfs other --session-timeout 5s -o "etcd_user=other,etcd_password_file=$dir/other.password"
    # Without a session who waits goes on waiting, for as long as he likes, and who does not is told.
    for host in wrong nobody other; do
        told "$host" 'the servers do not accept who we are'
        call "at-$host" "$dir/$host/$host" open ex-nb alarm=0.3 ex quiet ex hold
    done
    for host in wrong nobody other; do
        expect "at-$host" "ex EINTR"
        said "at-$host" "ex-nb ENOLCK" || fail "not refused: $(<"$dir/at-$host.out")"
        expect_status 1 "$dlockctl" --mount "$dir/$host" doctor >"$dir/doctor"
        grep -q '^error: s.*the servers do not accept who we are' "$dir/doctor" || fail "$(<"$dir/doctor")"
    done
    sleep 11 # two more attempts
    for host in wrong nobody other; do
        expect_equal "errors of $host" 1 "$(grep -c error: "$dir/$host.log")"
    done
    # The role is taken away, and given back.
    hold other-holder "$dir/right/two"
    expect other-holder held
    etcd "${root[@]}" user revoke-role host hosts >/dev/null
    call late "$dir/right/late" open ex-nb hold
    expect late "ex-nb ENOLCK"
    etcd "${root[@]}" user grant-role host hosts >/dev/null
    release holder other-holder
    comes_free "$dir/right/job"
    comes_free "$dir/right/two"
    # The password is changed to the one that was wrong.
    etcd "${root[@]}" user passwd host --interactive=false <<<wrong >/dev/null
    expect at-wrong "ex ok"
    etcd "${root[@]}" user grant-role other hosts >/dev/null
    expect at-other "ex ok"
    etcd "${root[@]}" auth disable >/dev/null
    expect at-nobody "ex ok"
    release at-wrong at-nobody at-other late
    if grep -rlF -e s3cret "$dir"/*.log "$dir"/*.out "$dir/right/.dlockfs/status" "$dir/right/.dlockfs/metrics"; then
        fail "the password was told"
    fi
}

scene full no_space
scene users users
scenes_end
