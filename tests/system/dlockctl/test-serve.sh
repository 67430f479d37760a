#!/bin/bash
# dlockctl serve: what programs get is what --json says, with names of any kind; nothing can be changed, and nobody reads it by another
# name; viewers hear of what is new; a mount that hangs, and clients that send nothing, keep nobody else waiting.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires test -x "$build/src/web/dlockfs-web"
requires command -v jq

start_dlockfs A
start web "$build/src/web/dlockfs-web" --mount "$dir/A" --listen 127.0.0.1:0 --host locks.example --red 1s
start other-web "$build/src/web/dlockfs-web" --mount "$dir/A" --listen 127.0.0.1:0
has_address() {
    [[ $(<"$dir/$1.out") == http://127.0.0.1:*/ ]]
}
wait_until "$deadline" has_address web
wait_until "$deadline" has_address other-web
page=$(<"$dir/web.out")
page=${page%/}
other_page=$(<"$dir/other-web.out")

# get PATH [OPTION...]: the body in $dir/body, the headers in $dir/head. Prints the status.
get() {
    curl --silent --max-time 30 --path-as-is --output "$dir/body" --dump-header "$dir/head" --write-out '%{http_code}' "${@:2}" "$page$1"
}
# gets STATUS PATH [OPTION...]
gets() {
    expect_equal "${*:2}" "$1" "$(get "${@:2}")"
}

# Clients that send nothing, as many as there may be, lose their places to others.
cat >"$dir/idle.py" <<'END'
import socket, sys
def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
idle = [connect() for _ in range(128)]
for client in idle[:40]:
    client.sendall(b"GET / HTTP/1.1\r\nHost: local")
client = connect()
client.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
assert client.recv(100).startswith(b"HTTP/1.1 200 "), "no answer"
print("answered", flush=True)
END
port=${other_page##*:}
start idle "$python" "$dir/idle.py" "${port%/}"

# The same as from dlockctl, whatever the names are.
names=('<script>alert(1)<' 'cron/a "quoted" & more' $'bell\a\e[31m' $'\u202eright to left' $'no utf-8 \xff' 'a?b#c%41\d' '..a/%2F')
mkdir "$dir/A/cron" "$dir/A/..a"
for number in "${!names[@]}"; do
    hold "holder$number" "$dir/A/${names[number]}"
    expect "holder$number" held
done
hold waiter "$dir/A/${names[0]}"
waits() {
    [ "$("$dlockctl" --mount "$dir/A" show --json "$1" | jq '.locks[0].waiters')" = 1 ]
}
wait_until "$deadline" waits "${names[0]}"
ages_aside() {
    jq -S 'del(.locks[]?.claims[].age)' "$@"
}
for pair in "locks ls" "graph graph" "hosts hosts"; do
    gets 200 "/api/${pair% *}"
    grep -q '^Content-Type: application/json' "$dir/head"
    ! LC_ALL=C grep -q '[^ -~]' "$dir/body" || fail "${pair% *}: bytes that are not ASCII"
    "$dlockctl" --mount "$dir/A" "${pair#* }" --json 2>"$dir/err" | ages_aside >"$dir/wanted"
    ages_aside "$dir/body" | diff -u "$dir/wanted" - || fail "${pair% *} differ"
done
encoded() {
    LC_ALL=C jq -rn --rawfile name "$1" '$name | @uri'
}
for name in "${names[@]}"; do
    [[ $name != *$'\xff' ]] || continue
    printf %s "$name" >"$dir/name"
    gets 200 "/api/lock/$(encoded "$dir/name")"
    expect_equal "the lock" "$name" "$(jq -r '.locks[0].name' "$dir/body")"
done
gets 200 '/api/lock/no%20utf-8%20%ff'
expect_equal "waiters" 1 "$(get "/api/lock/%3Cscript%3Ealert(1)%3C" >"$dir/status"; jq '.locks[0].waiters' "$dir/body")"
gets 404 /api/lock/nothing
gets 404 /api/lock/
gets 404 /api/lock/../../../etc/passwd
gets 404 /../../etc/passwd
gets 404 /page.css/
gets 200 /metrics
grep -qx 'dlockfs_up 1' "$dir/body"
gets 200 /healthz
expect_equal "health" ok "$(<"$dir/body")"

# Every answer says that nothing else is loaded, that it is shown in no frame, and that no other page may read it.
for path in / /page.js /page.css /api/locks /healthz /nothing; do
    get "$path" >"$dir/status"
    for header in "Content-Security-Policy: default-src 'none'; script-src 'self'; .*frame-ancestors 'none'" 'X-Content-Type-Options: nosniff' \
        'Referrer-Policy: no-referrer' 'Cross-Origin-Resource-Policy: same-origin' 'Cache-Control: no-store'; do
        grep -q "^$header" "$dir/head" || fail "$path has no $header"
    done
    ! grep -qi '^Access-Control-' "$dir/head" || fail "$path may be read by others"
done
gets 200 / --head
for method in POST PUT DELETE OPTIONS TRACE PATCH; do
    gets 405 /api/locks --request "$method"
    grep -q '^Allow: GET, HEAD' "$dir/head"
done
gets 405 / --data x
gets 413 / --request GET --data x
gets 413 / --request GET --header 'Transfer-Encoding: chunked' --data x
gets 431 / --header "X-Long: $(printf '%20000s' '' | tr ' ' x)"

# By another name, as of a page whose name was made to mean this address, it is read by nobody.
for host in evil.example 127.0.0.1.evil.example localhost.evil.example 10.0.0.1 '[::2]' '' '[' 'locks.example.'; do
    gets 421 /api/locks --header "Host: $host"
done
gets 421 / --http1.0 --header 'Host:'
# Nor do pages of others, as browsers tell; a link to this one does.
gets 403 /events --header 'Sec-Fetch-Site: cross-site' --header 'Sec-Fetch-Mode: cors'
gets 200 / --header 'Sec-Fetch-Site: cross-site' --header 'Sec-Fetch-Mode: navigate'
for host in localhost LOCALHOST:1 127.0.0.1 127.0.0.2:80 '[::1]:80' locks.example Locks.Example:443; do
    gets 200 / --header "Host: $host"
done

# Viewers are told what is there, and what comes.
start viewer curl --silent --no-buffer --max-time 120 "$page/events"
told() {
    grep '^data: {' "$dir/viewer.out" | tail -n 1 | cut -c7- | jq -e "$1" >"$dir/told"
}
wait_until "$deadline" told '.red == 1 and (.rows | length) == 7 and any(.rows[]; .[1] == "<script>alert(1)<" and .[5] == 1)'
wait_until "$deadline" told '[.rows[][1]] | contains(["bell\\x07\\x1B[31m", "\\xE2\\x80\\xAEright to left", "no utf-8 \\xFF"])'
hold late "$dir/A/late"
wait_until "$deadline" told '.rows | length == 8'
release late
wait_until "$deadline" told '.rows | length == 7'
release viewer

expect idle answered
release other-web

# Nobody waits for a mount that hangs.
send_signal A STOP
gets 503 /healthz
expect_equal "why" "status: the time is over" "$(<"$dir/body")"
gets 200 / --max-time "$prompt"
gets 200 /metrics
grep -qx 'dlockfs_up 0' "$dir/body"
send_signal A CONT
healthy() {
    [ "$(get /healthz)" = 200 ]
}
wait_until "$deadline" healthy
gets 200 /api/locks
for number in "${!names[@]}"; do
    release "holder$number"
done
release waiter web
expect_equal "what it said" "$page/" "$(<"$dir/web.out")"
