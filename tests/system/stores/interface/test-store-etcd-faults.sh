#!/bin/bash
# The store that keeps claims in etcd, without a daemon, when its session is taken away, its server dies or stands still, its users
# may not do everything, or its servers have no space left. See etcd_session_test.c and etcd_refusals_test.c.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

programs=$build/tests/system/stores/interface
requires test -x "$programs/etcd_grpc_test" # a build with etcd

# Its servers die, and stand still, when it asks for that.
session() {
    local command argument
    mkfifo "$dir/ask" "$dir/answer"
    exec 3<>"$dir/ask" 4<>"$dir/answer"
    start_etcd
    start session bash -c "\"\$0\" etcd_session \"\$1\"; echo \"end \$?\" >&3" "$programs/store_tests" "etcd://$(etcd_address)"
    while read -r -t 250 -u 3 command argument; do
        [ "$command" != end ] || break
        "$command" "$argument"
        echo "done" >&4
    done
    finish session || true
    cat "$dir"/session.* 2>/dev/null | tail -n 60
    [ "$command $argument" = "end 0" ] || fail "tests of: etcd_session"
}

refusals() {
    etcd_options=(--quota-backend-bytes 4000000)
    start_etcd
    "$programs/store_tests" etcd_refusals "etcd://$(etcd_address)" || fail "tests of: etcd_refusals"
}

scene session session
scene refusals refusals
scenes_end
