#!/bin/bash
# gluster.sh FOLDER: GlusterFS with one brick in FOLDER, and three mounts FOLDER/mount1 to mount3, which are three hosts.
# Writes FOLDER/ready when they can be used. To be run in mount, network and pid namespaces of its own: it needs an
# address, because glusterd refuses those of loopback, and its folders below /var and /run hide those of the machine.
# All of it ends with the pid namespace.

set -euo pipefail

folder=$1
address=192.0.2.1 # for documentation: no host has it
deadline=30

# waits_for COMMAND...
waits_for() {
    local end=$((SECONDS + deadline))
    until timeout 5 "$@" >>"$folder/wait.log" 2>&1; do
        if [ "$SECONDS" -gt "$end" ]; then
            echo "not within $deadline s: $*: $(tail -n 1 "$folder/wait.log")" >&2
            exit 1
        fi
        sleep 0.1
    done
}

mount -t proc proc /proc # gluster looks for itself there

# The network has no other interface than loopback.
ip link set lo up
ip address add "$address/32" dev lo

mkdir "$folder"/{state,log,brick,mount1,mount2,mount3}
mkdir -p /var/lib/glusterd /var/log/glusterfs
mount --bind "$folder/state" /var/lib/glusterd
mount --bind "$folder/log" /var/log/glusterfs
mount -t tmpfs run /run
mkdir -p /run/gluster

glusterd --no-daemon &
waits_for gluster --mode=script volume list
gluster --mode=script volume create bench "$address:$folder/brick" force
gluster --mode=script volume start bench
for number in 1 2 3; do
    waits_for glusterfs --volfile-server="$address" --volfile-id=bench "$folder/mount$number"
    waits_for mountpoint -q "$folder/mount$number"
    waits_for touch "$folder/mount$number/job"
done
touch "$folder/ready"
wait
