# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# The servers that bench/run.sh compares with, each with a folder of its own in $dir and on a free port of loopback.
# start_SERVER fails with the reason in the variable reason. Sourced after functions.sh.

reason=

# needs COMMAND...: they are installed.
needs() {
    local command
    for command; do
        if ! command -v "$command" >/dev/null; then
            reason="$command is not installed"
            return 1
        fi
    done
}

# serves NAME COMMAND...: waits until the command says that the server works.
serves() {
    local name=$1 end
    shift
    end=$(($(now_ms) + deadline * 1000))
    until timeout 5 "$@" >/dev/null 2>&1; do
        if gone "$name" || [ "$(now_ms)" -gt "$end" ]; then
            reason=$(tail -n 1 "$dir/$name.out")
            reason="$name does not serve${reason:+: $reason}"
            return 1
        fi
        sleep 0.1
    done
}

# start_gluster: one brick and three mounts, in namespaces of their own, so that nothing of it is seen elsewhere. Sets
# gluster, the command that runs another one in there; the mounts are $dir/gluster/mount1 to mount3.
start_gluster() {
    local inside
    needs glusterd glusterfs gluster unshare nsenter ip || return
    if [ "$(id -u)" -ne 0 ]; then
        reason="GlusterFS needs root"
        return 1
    fi
    mkdir "$dir/gluster"
    start gluster unshare --mount --net --pid --fork --kill-child bash "$tests/bench/gluster.sh" "$dir/gluster"
    serves gluster test -e "$dir/gluster/ready" || return
    inside=$(pgrep -P "$(pid gluster)")
    # shellcheck disable=SC2034 # for run.sh
    gluster="nsenter -t $inside --mount --net --pid"
}
