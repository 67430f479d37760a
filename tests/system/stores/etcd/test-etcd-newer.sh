#!/bin/bash
# dlockfs with the etcd of Debian 13, a later one than that of Debian 12: the tests that need etcd, with the servers and the etcdctl
# of its packages. These are unpacked only; as programs in Go they need nothing but the C library.
#
# From the environment: RELEASE, of which Debian (trixie); TESTS, which ones are run; DURATION, of the chaos, in seconds (20).
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"
# shellcheck source=../../../lib/machine.sh
. "$tests/lib/machine.sh"
# shellcheck source=../../../list.sh
. "$tests/list.sh"

release=${RELEASE:-trixie}
export DURATION=${DURATION:-20}
# The longest first.
read -r -a names <<<"${TESTS:-store-etcd etcd-chaos etcd-errors store-etcd-faults etcd-lease etcd-clients etcd-tls etcd-servers \
    etcd-basics etcd-restart etcd-grpc}"
side_by_side=3 # they wait most of their time

# of_release COMMAND ARGUMENT...: apt-get with the packages of the release, which knows nothing of this machine's, nor they of it.
of_release() {
    timeout 300 apt-get -qq -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$dir/apt" -o Dir::Cache="$dir/apt" -o APT::Sandbox::User=root -o Acquire::Languages=none \
        -o Acquire::Retries=3 -o APT::Update::Error-Mode=any "$@"
}

get_packages() {
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial" "$dir/packages" "$dir/newer" &&
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $release main" >"$dir/sources.list" &&
        of_release update && (cd "$dir/packages" && of_release download etcd-server etcd-client)
}

requires get_packages
for package in "$dir"/packages/*.deb; do
    dpkg-deb -x "$package" "$dir/newer"
done
export DLOCKFS_ETCD_BIN=$dir/newer/usr/bin
version() {
    "$1/etcd" --version | sed -n 's/^etcd Version: //p'
}
newer=$(version "$DLOCKFS_ETCD_BIN")
older=$(version /usr/bin)
if ! printf '%s\n' "$older" "$newer" | sort -V -u -C || [ "$newer" = "$older" ]; then
    fail "etcd $newer of $release is not later than $older of this machine"
fi

declare -A name_of=() begin_of=()
failed=()

begin() {
    mkdir "$dir/$1"
    env -u DLOCKFS_TEST_TIMES -u KEEP DLOCKFS_TEST_DIR="$dir/$1" bash "$(system_test "$1")" >"$dir/$1.log" 2>&1 </dev/null &
    name_of[$!]=$1
    begin_of[$!]=$SECONDS
}

# end_one: waits for the end of one of them.
end_one() {
    local process status=0 name
    wait -n -p process "${!name_of[@]}" || status=$?
    name=${name_of[$process]}
    unset "name_of[$process]"
    echo "$name: $((SECONDS - begin_of[$process])) s, status $status"
    [ "$status" -eq 0 ] || failed+=("$name")
}

# What still runs when this test ends takes its own things away.
end_all() {
    [ ${#name_of[@]} -eq 0 ] || kill "${!name_of[@]}"
    wait
}
cleanup_fn end_all

# That of the tests is really the newer one.
begin_version() {
    mkdir "$dir/version"
    # shellcheck disable=SC2016 # for the shell that is started
    env -u DLOCKFS_TEST_TIMES DLOCKFS_TEST_DIR="$dir/version" bash -c '. "$0"; start_etcd; etcd_status etcd; etcdctl version' \
        "$tests/functions.sh" >"$dir/version.out"
}
begin_version
for line in "^http:[^,]*, [^,]*, $newer, " "^etcdctl version: $newer\$"; do
    grep -q "$line" "$dir/version.out" || fail "not etcd $newer: $(<"$dir/version.out")"
done

echo "etcd $newer:"
for name in "${names[@]}"; do
    [ ${#name_of[@]} -lt "$side_by_side" ] || end_one
    begin "$name"
done
while [ ${#name_of[@]} -gt 0 ]; do
    end_one
done
for name in "${failed[@]}"; do
    echo "--- $name:"
    grep -a -A 6 '^\[  ERROR' "$dir/$name.log" | head -n 60 || true
    tail -n 60 "$dir/$name.log"
    rm "$dir/$name.log"
done
[ ${#failed[@]} -eq 0 ] || fail "with etcd $newer: ${failed[*]}"
