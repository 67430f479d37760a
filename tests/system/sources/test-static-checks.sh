#!/bin/bash
# The sources are formatted, and clean for clang-tidy (with the warnings of clang) and cppcheck. clang-tidy leaves the
# tests out, unless TIDY_TESTS=1 is in the environment.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v clang-format-14
requires command -v clang-tidy-14
requires command -v cppcheck
requires test -e "$build/compile_commands.json"
cd "$source_dir"
failed=

mapfile -t files < <(find src fs tests -name '*.[ch]' | sort)
clang-format-14 --dry-run -Werror "${files[@]}" || failed+=" clang-format"

mapfile -t sources < <(find src fs ${TIDY_TESTS:+tests} -name '*.c' | sort)
printf '%s\n' "${sources[@]}" |
    xargs -P 2 -n 12 clang-tidy-14 --quiet -p "$build" 2>"$dir/tidy.err" || failed+=" clang-tidy"

# It takes macros for functions whose headers it does not see.
mkdir "$dir/include"
ln -s /usr/include/uthash.h /usr/include/utlist.h "$dir/include"
cat >"$dir/suppressions" <<'END'
// ++ in an initialiser of which nothing else depends
unknownEvaluationOrder:tests/unit/*
// the loop ends by what it sets
nullPointerRedundantCheck:tests/sim/world_model.c
// DL_SORT looks whether the list is empty
nullPointer:src/view/view.c
nullPointer:fs/files/inode_restore.c
nullPointer:src/engine/transfer.c
END
cppcheck --quiet -j 2 --enable=warning,performance,portability --error-exitcode=1 --max-configs=1 --std=c11 \
    --suppressions-list="$dir/suppressions" --template='{file}:{line}: {severity}: {message} [{id}]' \
    --template-location='' -D_GNU_SOURCE -I"$dir/include" -Isrc -Ifs -Itests/unit -Itests/sim \
    -Itests/fuzz src fs tests || failed+=" cppcheck"

[ -z "$failed" ] || fail "not clean:$failed"
