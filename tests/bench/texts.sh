#!/bin/bash
# What texts of files in a directory of style = file cost one server: two hosts, one of which writes a text of that length again and
# again, each time with an fsync, while nobody else writes anything. For each length: how many such writes a second, how many bytes the
# server writes to its disk for each, how much its memory and its data folder grow while there are FILES such texts, and how long the
# other host takes to read one.
#
#     tests/bench/texts.sh [SECONDS [FILES]]      (3, 20)
#
# From the environment: STORES, some of "zookeeper etcd"; HEAP, of ZooKeeper's server (1000m): it keeps its last 500 transactions there. The folder for the tests has to be on a disk, not on a tmpfs.

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"
seconds=${1:-3}
files=${2:-20}

printf '%s\n' '[mount]' 'directories = files' 'user_names = 1000000' '[locks "files"]' 'style = file' 'text_limit = 1048576' \
    >"$dir/files.ini"
export seconds files
# shellcheck disable=SC2034 # of start_zookeeper
zookeeper_options=(-Xmx"${HEAP:-1000m}")

measure() { # STORE SERVER
    local host
    "start_$1"
    for host in A B; do
        start_dlockfs "$host" --config "$dir/files.ini" --session-timeout 30s
    done
    wait_until "$deadline" mkdir "$dir/A/files/ready" 2>/dev/null
    "$python" - "$1" "$(pid "$2")" "$dir/A/files" "$dir/B/files" "$dir/$2" <<'PY'
import os
import random
import subprocess
import sys
import time

store, server, here, there, folder = sys.argv[1:]
seconds, files = int(os.environ["seconds"]), int(os.environ["files"])


def disk():
    with open(f"/proc/{server}/io") as file:
        return int(dict(line.split(": ") for line in file)["write_bytes"])


def memory():
    with open(f"/proc/{server}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def data():
    return int(subprocess.run(["du", "-s", "--block-size=1M", folder], stdout=subprocess.PIPE, check=True).stdout.split()[0])


print(f"{store}: KiB  writes a second  KiB written to disk for each  {files} files: MiB of memory, and of disk, more  ms to read one there")
for kib in (4, 64, 1000):
    text = random.randbytes(kib * 1024)
    descriptor = os.open(f"{here}/text", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, text, 0)
    os.fsync(descriptor)
    before, begin, count = disk(), time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        text = text[1:] + text[:1]
        os.pwrite(descriptor, text, 0)
        os.fsync(descriptor)
        count += 1
    rate = count / (time.monotonic() - begin)
    written = (disk() - before) / count / 1024
    begin = time.monotonic()
    for _ in range(20):
        with open(f"{there}/text", "rb") as file:
            if file.read() != text:
                sys.exit("another text is read")
    reads = (time.monotonic() - begin) / 20
    os.close(descriptor)
    before = memory(), data()
    for number in range(files):
        with open(f"{here}/{number}", "wb") as file:
            file.write(random.randbytes(len(text)))
    print(f"{kib:>{len(store) + 5}} {rate:16.0f} {written:29.0f} {memory() - before[0]:32.0f} {data() - before[1]:20} {1000 * reads:25.1f}")
    for number in range(files):
        os.unlink(f"{here}/{number}")
    os.unlink(f"{here}/text")
PY
    stop_dlockfs A
    stop_dlockfs B
}

for store in ${STORES:-zookeeper etcd}; do
    case $store in
        zookeeper) measure zookeeper zk ;;
        etcd) measure etcd etcd ;;
    esac
done
