#!/bin/bash
# A server of etcd, or somebody on the way to it, changes answers: messages, statuses, the prefix of gRPC and the frames of HTTP/2,
# each in each way that nghttp2 and the daemon could stumble over; then it floods; then bytes at random. The daemon lives on, neither
# grows nor spins nor fills the log, serves its other store meanwhile, and locks again as soon as the answers are right.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=hostile.sh
. "$tests/system/stores/hostile.sh"

lines() {
    wc -l <"$dir/A.log"
}

memory_kb() {
    awk '/^VmHWM/ { print $2 }' "/proc/$(pid A)/status"
}

# suffer TIMES: and the other store is served meanwhile. Lines about the same are not written again and again.
suffer() {
    local lines
    lines=$(lines)
    mangle_begin
    wait_until "$deadline" changed "$1"
    soon flock "$dir/A/other/meanwhile" true
    # As long as something was repeated without a pause.
    [[ " $repeated " != *" $what "* ]] || sleep 1
    mangle_end "$1"
    lines=$(($(lines) - lines))
    echo "$lines lines, $(memory_kb) kB"
    [ "$lines" -le 40 ] || fail "$lines lines of: $what"
}

repeated="no-header old-revision refused no-key lease-taken reset bad-headers"
program=$tests/system/stores/mangle_etcd.py
mapfile -t changes < <("$python" "$program" --list && "$python" "$program" --floods && printf 'random %s\n' 1 2)

# suffer_half 0|1: each second change, below a path of its own.
suffer_half() {
    local i times
    store=etcd://$(etcd_address)/half$1
    start_mangle "$program" "$(etcd_address)"
    cat >"$dir/files.ini" <<END
[mount]
directories = spool other
[store]
session_timeout = 3s
[store "other"]
url = etcd://$(etcd_address)/other$1
[locks "spool"]
style = file
END
    start_dlockfs B --config "$dir/files.ini"
    start_dlockfs A --config "$dir/files.ini" --store "etcd://$link_address/half$1"
    start work "$python" "$tests/system/stores/busy_hosts.py" "$dir/A" "$dir/B"
    for ((i = $1; i < ${#changes[@]}; i += 2)); do
        what=${changes[i]}
        times=1
        [[ $what != random* ]] || times=15
        suffer $times
    done
    [ "$(memory_kb)" -lt 400000 ] || fail "has grown to $(memory_kb) kB"
    release work
}

start_etcd
scene first suffer_half 0
scene second suffer_half 1
scenes_end
