#!/bin/bash
# gRPC as the store for etcd speaks it, against a real server: calls, streams, errors and long answers; without TLS, and by TLS with
# certificates of both sides. See etcd_grpc_test.c.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

requires test -x "$build/tests/system/stores/interface/etcd_grpc_test"
requires type -P etcd
requires command -v openssl

# serve NAME SCHEME OPTION...: an etcd of its own. Sets `address`.
serve() {
    local name=$1 scheme=$2 peer
    shift 2
    address=127.0.0.1:$(free_port)
    peer=http://127.0.0.1:$(free_port)
    start "$name" etcd --name "$name" --data-dir "$dir/$name.data" --logger zap --log-level error \
        --listen-client-urls "$scheme://$address" --advertise-client-urls "$scheme://$address" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "$name=$peer" "$@"
}

serve plain http
"$build/tests/system/stores/interface/etcd_grpc_test" "$address" || fail "without TLS"

etcd_certificate ca ca
etcd_certificate member ca
etcd_certificate host ca
serve tls https --cert-file "$dir/member.pem" --key-file "$dir/member.key" --client-cert-auth --trusted-ca-file "$dir/ca.pem"
"$build/tests/system/stores/interface/etcd_grpc_test" "$address" "$dir/ca.pem" "$dir/host.pem" "$dir/host.key" || fail "with TLS"
