#!/bin/bash
# A record lock in so many pieces that the servers do not take its data is refused, with a line in the log, and so is a text in a directory of
# style = file that is as long; the other locks of the host are kept. ZooKeeper only closes the connection (jute.maxbuffer), etcd says what is wrong (--max-request-bytes).
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# refused_on HOST: and what is told of that, once.
refused_on() {
    local host=$1 pieces
    start "holder-$host" flock "$dir/$host/other" sh -c 'echo held; exec sleep 1000'
    expect "holder-$host" held
    start "pieces-$host" "$python" "$tests/system/records/many_pieces.py" "$dir/$host/pieces"
    expect "pieces-$host" "token"
    pieces=$(sed -n 's/ ENOLCK$//p' "$dir/pieces-$host.out")
    echo "$host: ${pieces:-none} pieces"
    [ "${pieces:-0}" -ge 100 ] || fail "$host: $(<"$dir/pieces-$host.out")"
    grep -q 'the store refuses the claim: Message too long' "$dir/$host.log" || fail "$host: no word of it"
    expect_equal "$host: a text of 20000 bytes" EFBIG "$("$python" "$tests/lib/long_texts.py" write "$dir/$host/files/long" 20000)"
    expect_equal "$host: one of 7000 bytes" "done" "$("$python" "$tests/lib/long_texts.py" write "$dir/$host/files/text" 7000)"
    # What is held is held, also that in pieces, and others get theirs.
    expect_status 1 flock -n "$dir/$host-2/other" true
    timeout 20 flock -n "$dir/$host/third" true || fail "$host: no other lock"
    if grep 'giving it up\|expired\|lock lost' "$dir/$host.log"; then
        fail "$host: a session was lost"
    fi
}

printf '%s\n' '[mount]' 'directories = files' '[locks "files"]' 'style = file' >"$dir/files.ini"

zookeeper_options=(-Djute.maxbuffer=8192)
start_zookeeper
start_dlockfs Z --session-timeout 15s --config "$dir/files.ini"
start_dlockfs Z-2 --session-timeout 15s
refused_on Z
lost=$(grep -c 'connection to .* lost' "$dir/Z.log" || true)
echo "connections lost: $lost"
[ "$lost" -le 6 ] || fail "$lost connections were lost"
grep -q 'the servers close the connection when they are sent' "$dir/Z.log" || fail "the limit is not told"

if type -P etcd >/dev/null; then
    # shellcheck disable=SC2034 # of etcd.sh
    etcd_options=(--max-request-bytes 8192)
    start_etcd
    start_dlockfs E --session-timeout 15s --config "$dir/files.ini"
    start_dlockfs E-2 --session-timeout 15s
    refused_on E
    ! grep 'connection to .* lost' "$dir/E.log" || fail "a connection was lost"
fi
