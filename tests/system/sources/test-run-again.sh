#!/bin/bash
# tests/run.sh runs a test that failed once more, alone, and says that it is flaky if it passes then; what tells of a violation
# fails at once, and so do more than three. In a copy of tests/, whose tests are made here.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires test "$(id -u)" = 0
requires test -c /dev/fuse

mkdir -p "$dir/tree/tests/system/made" "$dir/bin"
cp "$tests"/{run,processes,packages,list}.sh "$dir/tree/tests"

# There is nothing to be built, and all packages are there.
printf '#!/bin/sh\n[ "$1" != introspect ] || echo "[]"\n' >"$dir/bin/meson"
printf '#!/bin/sh\nprintf installed\n' >"$dir/bin/dpkg-query"
chmod +x "$dir"/bin/*

# makes NAME FIRST SECOND: a test that says FIRST and fails, and then SECOND; without a word it passes.
makes() {
    cat >"$dir/tree/tests/system/made/test-$1.sh" <<END
if [ ! -e "$dir/ran-$1" ]; then
    : >"$dir/ran-$1"
    words="$2"
else
    others=\$(find "$dir" -maxdepth 1 -name 'runs-*')
    words="\${others:+failed: beside \$others}$3"
fi
: >"$dir/runs-$1"
sleep 0.2
rm "$dir/runs-$1"
[ -z "\$words" ] || { echo "\$words"; exit 1; }
END
}

# runs STATUS LINE: run.sh ends so, with that line.
runs() {
    local status=0
    PATH=$dir/bin:$PATH TMPDIR=$dir CI='' JOBS=4 DLOCKFS_BUILD=$dir/tree/build "$dir/tree/tests/run.sh" >"$dir/out" 2>&1 || status=$?
    [ "$status" -eq "$1" ] || fail "status $status, not $1: $(<"$dir/out")"
    expect_equal "last line" "$2" "$(tail -n 1 "$dir/out")"
    rm -f "$dir"/ran-*
}

makes good "" ""
makes late "failed: too late" ""
runs 0 "2 passed, 0 failed"
grep -qx 'flaky: late  failed: too late' "$dir/out" || fail "$(<"$dir/out")"
grep -qx 'failed: too late' "$dir/tree/build/first-logs/late.log" || fail "the first log is not kept"

makes wrong "failed: wrong" "failed: wrong again"
runs 1 "2 passed, 1 failed"
grep -q '^FAIL wrong .*failed: wrong again$' "$dir/out" || fail "$(<"$dir/out")"
makes wrong "" ""

for words in "failed: violation: two hold" "VIOLATION: two hold" "--- sanitizer report:" "==7==ERROR: AddressSanitizer: heap-use-after-free" \
    "failed: the daemon of A ended with status 139"; do
    makes broken "$words" ""
    runs 1 "3 passed, 1 failed"
    ! grep -q '^flaky: broken' "$dir/out" || fail "run again after: $words"
done
makes broken "" ""

for name in one two three; do
    makes "$name" "failed: not yet" ""
done
runs 1 "3 passed, 4 failed"
! grep -q '^flaky: ' "$dir/out" || fail "more than three are run again"
