#!/bin/bash
# Under valgrind's memcheck there is no error and no leak: unit tests that are quick there, raw requests, and the daemon
# of whole system tests.
#
# From the environment: VALGRIND_TESTS, the system tests (with a higher LIMIT for tests/run.sh).
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../list.sh
. "$tests/list.sh"

requires command -v valgrind
valgrind=(valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite
    --errors-for-leak-kinds=definite)

failed=
mkdir "$dir/unit"
# under_valgrind NAME COMMAND...
under_valgrind() {
    "${valgrind[@]}" "${@:2}" >"$dir/unit/$1" 2>&1 || { failed+=" $1" && cp "$dir/unit/$1" "$dir/$1.out"; }
}
for name in claim/data config/config config/url engine/engine engine/record_calls fs/metrics stores/local view/view; do
    program=$build/tests/unit/${name%/*}/test_${name#*/}
    if [ -e "$program" ]; then
        under_valgrind "${name/\//_}" "$program"
    else # those of the folder are one
        under_valgrind "${name/\//_}" "$build/tests/unit/test_${name%/*}" "${name#*/}"
    fi
done
under_valgrind requests "$build/tests/fuzz/fuzz_requests" "$tests/fuzz/corpus/requests"

mkdir "$dir/build"
ln -s "$build"/* "$dir/build"
rm "$dir/build/dlockfs"
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${valgrind[*]@Q} --log-file='$dir/memcheck.%p'" "$build/dlockfs" >"$dir/build/dlockfs"
chmod 755 "$dir/build/dlockfs"
for name in ${VALGRIND_TESTS:-exclusive-open flock-tool}; do
    start "$name" env -u DLOCKFS_TEST_DIR -u DLOCKFS_TEST_TIMES DLOCKFS_BUILD="$dir/build" "$(system_test "$name")"
    finish "$name" 300 || failed+=" $name"
done
for report in "$dir"/memcheck.*; do
    [ -e "$report" ] || fail "no daemon ran under valgrind"
    cat "$report" >>"$dir/memcheck.out"
done
[ -z "$failed" ] || fail "errors or leaks:$failed"
