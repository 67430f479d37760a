#!/bin/bash
# dlockctl doctor asks each server by itself, and looks at the configuration on the disk; dlockfs --ask does so without a mount, and the log has
# the reasons why a server cannot be reached.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires type -P etcd
requires type -P redis-server

etcd_certificate server server
start answers "$python" -u "$tests/system/dlockctl/answers.py" "$dir"
expect answers ready
at() {
    local way list=""
    for way; do
        list+=${list:+,}127.0.0.1:$(<"$dir/$way.port")
    done
    echo "$list"
}
dead=127.0.0.1:$(free_port)

# asked STATUS URL LINE...: dlockfs --ask says these lines, in which * stands for anything, and N for a time.
asked() {
    local status=$1 url=$2 lines line
    shift 2
    expect_status "$status" timeout "$deadline" "$dlockfs" --ask --store "$url" "${options[@]}" "$dir/nowhere" >"$dir/asked" 2>&1
    mapfile -t lines < <(sed 's/answers in [0-9]*\.[0-9] ms/answers in N ms/' "$dir/asked")
    expect_equal "lines about $url" $# ${#lines[@]}
    for line in "${lines[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ $line == ${1//[/\\[} ]] || fail "of the servers of $url it says \"$line\", expected \"$1\""
        shift
    done
}
options=()
asked 0 local:
asked 0 "zookeeper://$(at leader follower unlisted)" \
    "ok: servers: $(at leader): leads, answers in N ms" "ok: servers: $(at follower): follows, answers in N ms" \
    "ok: servers: $(at unlisted): may not tell whether it is in the quorum (srvr is not in its 4lw.commands.whitelist), answers in N ms"
asked 1 "zookeeper://$(at follower outside other hostile closes alert silent),$dead,nosuch.invalid:1" \
    "ok: servers: $(at follower): follows, answers in N ms" \
    "error: servers: $(at outside): is not in the quorum: it serves nobody" \
    "error: servers: $(at other): is no ZooKeeper, by what it answers" \
    "error: servers: $(at hostile): is no ZooKeeper, by what it answers" \
    "error: servers: $(at closes): has closed the connection without an answer; is it another service, or by TLS?" \
    "error: servers: $(at alert): answers by TLS, which is not expected here; expected its port without TLS, or TLS in [store]" \
    "error: servers: $(at silent): no * within 3000 ms" \
    "error: servers: $dead: Connection refused" \
    "error: servers: nosuch.invalid:1: *"
asked 1 "redis://$(at pong password loading follower)" \
    "ok: servers: $(at pong): serves, answers in N ms" "ok: servers: $(at password): serves, by a password, answers in N ms" \
    "error: servers: $(at loading): is loading its data, and serves nobody yet" "error: servers: $(at follower): is no Redis, by what it answers"
options=(-o "tls_ca=$dir/server.pem")
asked 1 "rediss://$(at tls pong closes)" "ok: servers: $(at tls): serves, answers in N ms" \
    "error: servers: $(at pong): the server answers without TLS, expected its port by TLS, or none in [store]" \
    "error: servers: $(at closes): the server has closed the connection (is it without TLS?)"
options=()
start_etcd
asked 1 "etcd://$(etcd_address),$dead,$(at other tls)" "ok: servers: $(etcd_address): leads, etcd 3.*, with 0 of 2048 MiB, answers in N ms" \
    "error: servers: $dead: Connection refused" "error: servers: $(at other): *" "error: servers: $(at tls): * (is it by TLS?)"

# doctor: the same servers, by the configuration of the mount; and what has become of that, and of what it had made in the mount.
printf '%s\n' '[mount]' 'directories = cron' 'mode = 0755' '[store]' 'url = local:' '[store "jobs"]' "url = etcd://$(etcd_address),$dead/jobs" >"$dir/A.ini"
cp "$dir/A.ini" "$dir/good.ini"
start_dlockfs A --config "$dir/A.ini" --store local:
# says STATUS LINE...: doctor ends so, and these are among its lines.
says() {
    local status=$1 line
    shift
    expect_status "$status" timeout "$deadline" "${as[@]}" "$dlockctl" --mount "$dir/A" doctor >"$dir/doctor.out"
    sed -i 's/answers in [0-9]*\.[0-9] ms/answers in N ms/' "$dir/doctor.out"
    for line; do
        grep -qxF -- "$line" "$dir/doctor.out" || fail "not said: $line: $(<"$dir/doctor.out")"
    done
}
as=()
PATH=$build:$PATH
says 1 "ok: mode: 0755, as in [mount]" "error: servers: jobs: $dead: Connection refused" "ok: configuration: $dir/A.ini has no error"
grep -q "^ok: servers: jobs: $(etcd_address): leads" "$dir/doctor.out"
refused grep -E "^warning: (configuration|directories)" "$dir/doctor.out"

rmdir "$dir/A/cron"
chmod 777 "$dir/A"
printf '%s\n' '[locks]' 'slots = many' >>"$dir/A.ini"
says 1 "warning: mode: the root of the mount has the mode 0777, and mode in [mount] is 0755: others may lock than it says; chmod it" \
    "warning: directories: cron is gone, which directories in [mount] names; a reload of dlockfs makes it again" \
    "warning: configuration: $dir/A.ini was written after dlockfs had read it, and what was read before is in use; systemctl reload dlockfs (or SIGHUP), and see what it says"
grep -q "^error: configuration: $dir/A.ini:9: .*many.*; a start or a reload would fail, what is in use stays$" "$dir/doctor.out"
# A file with a secret of the second store is gone.
cp "$dir/good.ini" "$dir/A.ini"
printf '%s\n' 'etcd_user = host' "etcd_password_file = $dir/secret" >>"$dir/A.ini"
says 1
grep -q "^error: configuration: .*$dir/secret.*No such file" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"
# It is there, and read anew.
(umask 077 && echo s3cret >"$dir/secret")
send_signal A HUP
wait_until "$deadline" grep -q 'has been read anew' "$dir/A.log"
chmod 755 "$dir/A"
says 1 "ok: mode: 0755, as in [mount]" "ok: configuration: $dir/A.ini has no error"
refused grep -E "^warning: (configuration|directories)" "$dir/doctor.out"
if [ "$(id -u)" -eq 0 ]; then
    as=(setpriv --reuid=65534 --clear-groups)
    dlockctl=$(for_others "$dlockctl")
    for_others "$dlockfs" >"$dir/out"
    PATH=$(dirname "$(<"$dir/out")"):$PATH
    says 0
    grep -q "^warning: configuration: not looked at, nor its servers: .*Permission denied.*; run dlockctl doctor as root$" "$dir/doctor.out" ||
        fail "$(<"$dir/doctor.out")"
    as=()
fi
rm "$dir/A.ini"
says 1 "error: configuration: $dir/A.ini: No such file or directory; what was read of it before is in use"

# The log has the reasons: each once, and when it is over.
port=$(free_port)
start_dlockfs Z --session-timeout 5s --store "zookeeper://127.0.0.1:$port,$(at closes)/dlockfs" --verbose
tried() { # NUMBER: so often at least
    [ "$(grep -c "Socket.*:$port .*Connection refused" "$dir/Z.log")" -ge "$1" ]
}
wait_until "$deadline" tried 5
expect_equal "lines about a port that refuses" 1 "$(grep -cx "dlockfs: warning: ZooKeeper: 127.0.0.1:$port: Connection refused; trying on" "$dir/Z.log")"
expect_equal "lines about one that closes" 1 "$(grep -c "warning: ZooKeeper: $(at closes): the server has closed the connection (" "$dir/Z.log")"

# A member of etcd that has lost the others takes connections, and answers nothing: that is told once, and when it is over.
start_etcds 3
start_dlockfs Q --session-timeout 5s --store "etcd://$(etcd_address etcd1)/dlockfs"
wait_until "$deadline" grep -q '^session=connected' "$dir/Q/.dlockfs/status"
kill_etcd etcd2
kill_etcd etcd3
wait_until "$deadline" grep -qx "dlockfs: warning: etcd: $(etcd_address etcd1): no answer in time; trying on" "$dir/Q.log"
alone() {
    expect_status 1 "$dlockfs" --ask --store "etcd://$(etcd_address etcd1)" "$dir/nowhere" >"$dir/asked"
    grep -qx "error: servers: $(etcd_address etcd1): is not in the quorum: it knows no leader" "$dir/asked"
}
wait_until "$deadline" alone
rejoin_etcd etcd2
wait_until "$deadline" grep -qE '^dlockfs: etcd: connected again after [0-9]+ ms, and [0-9]+ failed attempts?$' "$dir/Q.log"
expect_equal "reasons that come again" "" "$(sed '/connected again/q' "$dir/Q.log" | grep 'trying on' | sort | uniq -d)"
