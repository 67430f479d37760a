#!/bin/bash
# A proxy of etcd that answers keep-alives by itself: by it no session is had, as its answers prove nothing, and the log says why. By the
# member itself all works.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_etcd
port=$(free_port)
start grpc-proxy etcd grpc-proxy start --endpoints "$(etcd_address)" --listen-addr "127.0.0.1:$port"
answers() {
    ETCDCTL_ENDPOINTS=http://127.0.0.1:$port timeout 5 etcdctl --command-timeout=3s get x >/dev/null 2>&1
}
wait_until "$deadline" answers
start_dlockfs near --session-timeout 5s
start_dlockfs far --session-timeout 5s --store "etcd://127.0.0.1:$port/dlockfs"
comes_free "$dir/near/job"
wait_until "$deadline" grep -q 'what answers keep-alives is no etcd' "$dir/far.log"
call refused "$dir/far/job" open ex-nb close
expect_status 0 finish refused 30
said refused "ex-nb ENOLCK" || fail "not refused: $(<"$dir/refused.out")"
expect_equal "lines about it" 1 "$(grep -c 'what answers keep-alives' "$dir/far.log")"
stop_dlockfs far
stop_dlockfs near
release grpc-proxy
