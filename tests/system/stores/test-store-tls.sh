#!/bin/bash
# TLS and SASL to a server that asks for them: locks work over them, what is created belongs to who the host is, and a host that is
# not accepted is told so. Only with a build of ZooKeeper's library that has both; Debian's has neither.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

"$dlockfs" -o tls_ca=/none,sasl_user=x /none 2>"$dir/err" && fail "a file that is missing was taken"
! grep -q "library of this build has no" "$dir/err" || fail "$(sed 's/^dlockfs: error: -o [a-z_]*: //' "$dir/err")"
requires command -v openssl

# certificate NAME SIGNER: a key and a certificate of that name; signed by itself if that is the SIGNER.
certificate() {
    local signer=(-CA "$dir/$2.pem" -CAkey "$dir/$2.key")
    [ "$1" != "$2" ] || signer=(-addext "basicConstraints=critical,CA:true")
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" "${signer[@]}" \
        -keyout "$dir/$1.key" -out "$dir/$1.pem" 2>/dev/null
}
certificate ca ca
certificate server ca
certificate host ca
certificate stranger stranger
openssl ec -in "$dir/host.key" -aes128 -passout pass:word -out "$dir/locked.key" 2>/dev/null
echo word >"$dir/word"
chmod 600 "$dir"/*.key "$dir/word"
cat "$dir/server.key" "$dir/server.pem" >"$dir/keystore.pem"
cat >"$dir/jaas" <<'END_OF_JAAS'
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required user_hosts="word";
};
END_OF_JAAS
cat >"$dir/krb5.conf" </dev/null

secure=$(free_port)
zookeeper_configuration="secureClientPort=$secure
ssl.keyStore.location=$dir/keystore.pem
ssl.trustStore.location=$dir/ca.pem
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
# Debian's zookeeper.jar does not name all that it needs for TLS.
netty=$(printf ':%s' /usr/share/java/netty-{common,buffer,resolver,transport,transport-native-unix-common,transport-native-epoll,codec,handler}.jar)
zookeeper_options=("-Xbootclasspath/a$netty" -Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
    -Djava.security.auth.login.config="$dir/jaas" -Djava.security.krb5.conf="$dir/krb5.conf")
start_zookeeper
plain=$store
tls=zookeeper://127.0.0.1:$secure/tls

# locks HOST: whether it takes one, and gives it back.
locks() {
    flock -n "$dir/$1/job" true
}

# The host's certificate is who it is; a key may have a password.
host=tls_ca=$dir/ca.pem,tls_certificate=$dir/host.pem
store=$tls start_dlockfs A -o "$host,tls_key=$dir/host.key" --session-timeout 4s
store=$tls start_dlockfs B -o "$host,tls_key=$dir/locked.key,tls_password_file=$dir/word" --session-timeout 4s
wait_until "$deadline" locks A
wait_until "$deadline" locks B
hold holder "$dir/A/job"
expect holder held
expect_status 1 flock -n "$dir/B/job" true
release holder
expect_equal "rights" "x509 CN=host cdrwa,world anyone r" "$(ZOOKEEPER_AUTH='' zookeeper acl /tls | paste -sd,)"

# Certificates of others are not taken, even if the system trusts them.
export SSL_CERT_FILE=$dir/ca.pem
store=$tls start_dlockfs C -o "tls_ca=$dir/stranger.pem,tls_certificate=$dir/host.pem,tls_key=$dir/host.key" --session-timeout 4s
unset SSL_CERT_FILE
store=$tls start_dlockfs D -o "tls_ca=$dir/ca.pem,tls_certificate=$dir/stranger.pem,tls_key=$dir/stranger.key" --session-timeout 4s
for host in C D; do
    wait_until "$deadline" grep -q 'cannot reach ZooKeeper' "$dir/$host.log"
    expect_status 71 flock -n "$dir/$host/job" true 2>"$dir/err"
done

# A key that does not belong to the certificate is told once, and tried again without hurry.
store=$tls start_dlockfs E -o "tls_ca=$dir/ca.pem,tls_certificate=$dir/host.pem,tls_key=$dir/stranger.key" --session-timeout 4s
wait_until "$deadline" grep -q "TLS: cannot use $dir/stranger.key: key values mismatch" "$dir/E.log"
expect_status 71 flock -n "$dir/E/job" true 2>"$dir/err"
expect_equal "lines about the key" 1 "$(grep -c stranger.key "$dir/E.log")"

# SASL, with the right password and with another.
host=sasl_mechanism=DIGEST-MD5,sasl_user=hosts,sasl_host=zk-sasl-md5
echo wrong >"$dir/wrong"
chmod 600 "$dir/wrong"
store=$plain start_dlockfs S -o "$host,sasl_password_file=$dir/word" --session-timeout 2m
store=$plain start_dlockfs T -o "$host,sasl_password_file=$dir/wrong" --session-timeout 4s
wait_until "$deadline" locks S
wait_until "$deadline" grep -q 'the servers do not accept who we are' "$dir/T.log"
expect_status 71 flock -n "$dir/T/job" true 2>"$dir/err"
expect_equal "rights" "sasl hosts cdrwa,world anyone r" "$(zookeeper acl /dlockfs | paste -sd,)"
hold holder "$dir/S/job"
expect holder held
restart_zookeeper zk
comes_free "$dir/S/new"
expect_status 1 flock -n "$dir/S/job" true
release holder
