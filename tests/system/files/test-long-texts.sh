#!/bin/bash
# Texts in directories of style = file that are longer than a lock file's: up to text_limit, with any bytes; what is longer, or more than one
# packet takes, is refused, and harms nothing else; and a long write whose daemon is killed in the midst of it.
#
# From the environment: STORE, zookeeper (unless given) or etcd.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/kept.sh
. "$tests/lib/kept.sh"
# shellcheck source=../../lib/lockfile.sh
. "$tests/lib/lockfile.sh"

longest=1035000 # bytes of a file with one name, and a short one

# shellcheck disable=SC2034 # of start_zookeeper
zookeeper_options=(-Xmx768m) # it keeps its last 500 transactions
"start_${STORE:-zookeeper}"
printf '%s\n' '[mount]' 'directories = files long' '[locks "files"]' 'style = file' '[locks "long"]' 'style = file' \
    'text_limit = 1048576' '[locks]' 'try_limit = 30s' >"$dir/files.ini"
start_proxy link
start_kept A --config "$dir/files.ini" --session-timeout 60s --store "$(proxied link)"
start_dlockfs B --config "$dir/files.ini" --session-timeout 60s
wait_until "$deadline" at A mkdir ready 2>/dev/null # a session may have to prove itself first

long() {
    timeout "$deadline" "$python" "$tests/lib/long_texts.py" "$@" 2>&1
}
expect_equal "by itself" "" "$(long sizes "$dir/A/files" "$dir/B/files" 65536)"
expect_equal "up to 1 MiB" "" "$(long sizes "$dir/A/long" "$dir/B/long" "$longest")"
expect_equal "more than a packet takes" EFBIG "$(long write "$dir/B/long/more" 1048576)"

# The next daemon makes the write, and what was written is there once.
for count in 300000 1000000; do
    start "writer-$count" "$python" "$tests/lib/long_texts.py" write "$dir/A/long/killed" "$count" "$dir/go-$count"
    expect "writer-$count" open
    cut_link link
    go "go-$count"
    wait_until "$deadline" asleep "writer-$count"
    settle A # another request is the last one that it has read
    crash A
    join_link link
    wait_until "$deadline" gone "writer-$count"
    expect_equal "a write of $count, with a daemon that was killed" $'open\ndone' "$(<"$dir/writer-$count.out")"
    expected=$("$python" -c 'import random, sys; random.seed(int(sys.argv[1])); sys.stdout.buffer.write(random.randbytes(int(sys.argv[1])))' \
        "$count" | sha256sum)
    expect_equal "what the other host reads" "$expected" "$(sha256sum <"$dir/B/long/killed")"
    rm "$dir/A/long/killed"
done
stop_kept A
