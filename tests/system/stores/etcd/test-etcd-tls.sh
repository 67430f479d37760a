#!/bin/bash
# A mount whose store is an etcd that asks clients for a certificate: it locks, with the users of etcd, too; and what is wrong with a
# certificate, of either side, is told in one line that says what. Renewed files are taken without a restart, also those of root alone.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
requires command -v openssl

etcd_certificate ca ca
etcd_certificate other-ca other-ca
etcd_certificate member ca
etcd_certificate host ca
etcd_certificate stranger other-ca
# As the CA has signed it, but its time is over.
expire() {
    openssl req -new -key "$dir/$1.key" -subj "/CN=$1" -addext subjectAltName=IP:127.0.0.1 |
        openssl x509 -req -days -1 -copy_extensions copy -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -out "$dir/$2.pem" 2>>"$dir/openssl.err"
    cp "$dir/$1.key" "$dir/$2.key"
}
expire host expired
expire member expired-member
cp "$dir/stranger.pem" "$dir/renewed.pem"
cp "$dir/stranger.key" "$dir/renewed.key"
etcd_scheme=https
etcd_options=(--cert-file "$dir/member.pem" --key-file "$dir/member.key" --client-cert-auth --trusted-ca-file "$dir/ca.pem")
export ETCDCTL_CACERT=$dir/ca.pem ETCDCTL_CERT=$dir/host.pem ETCDCTL_KEY=$dir/host.key
start_etcd

# start_with HOST CA CERTIFICATE: a mount with these files; without CERTIFICATE it has none.
start_with() {
    start_dlockfs "$1" --session-timeout 5s -o "tls_ca=$dir/$2.pem${3:+,tls_certificate=$dir/$3.pem,tls_key=$dir/$3.key}"
}

# refused HOST PATTERN...: they do not connect, and say why, in one line however often they try; who does not wait is told.
refused() {
    local host
    local -A patterns=()
    while [ $# -gt 0 ]; do
        patterns[$1]=$2
        wait_until "$deadline" grep -qE -- "$2" "$dir/$1.log"
        call "at-$1" "$dir/$1/job" open ex-nb close
        shift 2
    done
    for host in "${!patterns[@]}"; do
        expect_status 0 finish "at-$host" 30
        said "at-$host" "ex-nb ENOLCK" || fail "$host is not refused: $(<"$dir/at-$host.out")"
        expect_status 1 "$dlockctl" --mount "$dir/$host" doctor >"$dir/doctor"
        grep -q "^error: s" "$dir/doctor" || fail "doctor of $host: $(<"$dir/doctor")"
        expect_equal "lines of $host about it" 1 "$(grep -cE -- "${patterns[$host]}" "$dir/$host.log")"
    done
}

start_with A ca host
start_with B ca host
hold holder "$dir/A/job"
expect holder held
expect_status 1 flock -n "$dir/B/job" true
expect_equal "keys of claims" 1 "$(etcd_claims job | wc -l)"
release holder
comes_free "$dir/B/job"

# Of files that root alone may read, in a folder of root alone; renewed ones are seen, too.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -m 700 "$dir/secrets"
    renew() {
        (umask 077 && cp "$dir/$1.pem" "$dir/secrets/new.pem" && cp "$dir/$1.key" "$dir/secrets/new.key" && cp "$dir/ca.pem" "$dir/secrets/new-ca.pem")
        mv "$dir/secrets/new.pem" "$dir/secrets/host.pem"
        mv "$dir/secrets/new.key" "$dir/secrets/host.key"
        mv "$dir/secrets/new-ca.pem" "$dir/secrets/ca.pem"
    }
    renew stranger
    printf '%s\n' '[mount]' 'user = daemon' '[store]' "tls_ca = $dir/secrets/ca.pem" "tls_certificate = $dir/secrets/host.pem" \
        "tls_key = $dir/secrets/host.key" >"$dir/roots.ini"
    start_dlockfs roots --session-timeout 5s --config "$dir/roots.ini"
    expect_equal "the user of the daemon" "$(id -u daemon)" "$(stat -c %u "/proc/$(pid roots)")"
    refused roots "TLS: the server refuses us: (bad certificate|unknown ca); trying on"
    renew host
    comes_free "$dir/roots/job"
    send_signal roots HUP
    wait_until "$deadline" grep -q 'has been read anew' "$dir/roots.log"
    stop_dlockfs roots
fi

start_with unknown-ca other-ca host
start_with stranger ca renewed
start_with expired ca expired
start_with none ca
start_dlockfs plain --session-timeout 5s
# With TLS of Go 1.19, as in Debian 12, a server says of each certificate that it is bad; later ones say why.
refused unknown-ca "TLS: the server's certificate is refused: unable to get local issuer certificate; trying on" \
    stranger "TLS: the server refuses us: (bad certificate|unknown ca); trying on" \
    expired "TLS: the server refuses us: (bad certificate|certificate expired); tls_certificate has expired; trying on" \
    none "TLS: the server refuses us: (bad certificate|certificate required); tls_certificate is not set; trying on" \
    plain "the server has closed the connection \(is it by TLS\?\); trying on"
# The files are made anew, and taken with the next attempt.
cp "$dir/host.key" "$dir/renewed.key"
cp "$dir/host.pem" "$dir/renewed.pem"
comes_free "$dir/stranger/job"
for host in unknown-ca stranger expired none plain; do
    expect_equal "warnings of $host that come again" "" "$(grep 'trying on' "$dir/$host.log" | sort | uniq -d)"
    stop_dlockfs "$host"
done

# The server's certificate is too old: who is connected goes on, who comes is told.
cp "$dir/member.pem" "$dir/member.saved"
cp "$dir/expired-member.pem" "$dir/member.pem"
start_with late ca host
refused late "TLS: the server's certificate is refused: certificate has expired; trying on"
comes_free "$dir/A/job"
cp "$dir/member.saved" "$dir/member.pem"
comes_free "$dir/late/job"
stop_dlockfs late

# A certificate and a user, who may do what is below its path.
etcd_add_users
etcd auth enable >/dev/null
(umask 077 && printf s3cret >"$dir/password")
user=etcd_user=host,etcd_password_file=$dir/password
certificate=tls_ca=$dir/ca.pem,tls_certificate=$dir/host.pem,tls_key=$dir/host.key
start_dlockfs user --session-timeout 5s -o "$certificate,$user"
hold holder "$dir/user/job"
expect holder held
release holder
# Its own path only: another one is refused, and that is told.
start_dlockfs beside --session-timeout 5s --store "etcd://$(etcd_address)/other" -o "$certificate,$user"
refused beside "the servers do not accept who we are"
etcd --user root:r00t auth disable >/dev/null
comes_free "$dir/beside/job"
