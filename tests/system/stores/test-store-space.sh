#!/bin/bash
# What the status, the metrics and dlockctl doctor say of the servers' space: etcd's database, its quota and its alarms, and the
# znodes below ZooKeeper's root. The daemon asks for it by itself now and then: the first time soon after it has connected.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/static_mount.sh
. "$tests/lib/static_mount.sh"

# said_of HOST KEY: the value in the status.
said_of() {
    sed -n "s/^$2=//p" "$dir/$1/.dlockfs/status"
}

knows() { # HOST KEY
    [ -n "$(said_of "$1" "$2")" ]
}

metric() { # HOST NAME
    sed -n "s/^$2 //p" "$dir/$1/.dlockfs/metrics"
}

# examine MOUNT STATUS LINE: dlockctl doctor ends so, and says that of the space.
examine() {
    expect_status "$2" "$dlockctl" --mount "$dir/$1" doctor >"$dir/doctor.out"
    grep '^[a-z]*: space: ' "$dir/doctor.out" >"$dir/space.out" || true
    grep -qF -- "$3" "$dir/space.out" || fail "not said: $3: $(<"$dir/doctor.out")"
}

# The daemon and etcd: by the default quota, as etcd 3.4 does not tell; then with an alarm.
etcd_options=(--quota-backend-bytes $((2 * 1024 * 1024)))
start_etcd
start_dlockfs A
wait_until "$deadline" knows A database_bytes
size=$(etcd endpoint status --write-out=json | "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["Status"]["dbSize"])')
expect_equal "size" "$size" "$(said_of A database_bytes)"
expect_equal "size in the metrics" "$size" "$(metric A dlockfs_store_database_bytes)"
[ "$(said_of A database_used_bytes)" -le "$size" ] || fail "more is used than there is"
expect_equal "full" 0 "$(metric A dlockfs_store_full)"
[ "$(said_of A database_quota_bytes)" -gt 0 ] || fail "no quota"
stop_dlockfs A
filler=$(head -c 500000 /dev/zero | tr '\0' x)
fill() {
    ! printf %s "$filler" | etcd put "filler-$RANDOM" >/dev/null 2>"$dir/fill.err" && grep -q 'space exceeded' "$dir/fill.err"
}
wait_until "$deadline" fill
start_dlockfs A # has no session, but asks
wait_until "$deadline" knows A database_alarms
expect_equal "alarms" NOSPACE "$(said_of A database_alarms)"
expect_equal "full" 1 "$(metric A dlockfs_store_full)"
examine A 1 "error: space: the alarm NOSPACE is on: nothing can be locked on any host; etcdctl compact, etcdctl defrag"
stop_dlockfs A

# ZooKeeper: as many as there are.
start_zookeeper
zookeeper make /dlockfs/one
zookeeper make /dlockfs/two
start_dlockfs B
wait_until "$deadline" knows B root_names
[ "$(said_of B root_names)" -ge 2 ] || fail "$(said_of B root_names) znodes below the root"
expect_equal "names in the metrics" "$(said_of B root_names)" "$(metric B dlockfs_store_root_names)"
expect_equal "a database" "" "$(metric B dlockfs_store_database_bytes)"
"$dlockctl" --mount "$dir/B" doctor >"$dir/doctor.out" || true # of the machine it may have something to say
grep -q "^ok: space: .* znodes stand directly below the root" "$dir/doctor.out" || fail "$(<"$dir/doctor.out")"

# From 80 % of the quota on there is a warning, with what helps.
make_static_mount
space() { # USED BYTES QUOTA WHOSE
    sed -i '/^database_/d' "$dir/static/.dlockfs/status"
    printf '%s\n' "database_used_bytes=$1" "database_bytes=$2" "database_quota_bytes=$3" "database_quota=$4" >>"$dir/static/.dlockfs/status"
}
mib=$((1 << 20))
space $((9 * mib)) $((79 * mib)) $((100 * mib)) told
examine static 0 "ok: space: the database has 79 of 100 MiB, its quota"
space $((9 * mib)) $((80 * mib)) $((100 * mib)) told
examine static 0 "warning: space: the file of the database has 80 of 100 MiB, its quota, but only 9 of them are in use: it is compacted, and may become smaller by etcdctl defrag"
space $((80 * mib)) $((81 * mib)) $((100 * mib)) default
examine static 0 "warning: space: the database has 81 of 100 MiB, etcd's default quota (this server does not tell its own), and 80 of them are in use"
grep -q 'auto-compaction-mode: periodic' "$dir/space.out" || fail "no word of compaction: $(<"$dir/space.out")"
echo database_alarms=CORRUPT >>"$dir/static/.dlockfs/status"
examine static 1 "error: space: the alarm CORRUPT is on"
sed -i '/^database_/d' "$dir/static/.dlockfs/status"
echo root_names=100000 >>"$dir/static/.dlockfs/status"
examine static 0 "warning: space: 100000 znodes stand directly below the root"
