#!/bin/bash
# The fuzz targets of tests/fuzz with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer: a build of their own,
# with clang. Each target begins with its corpus and is run so many times, with the seed that is printed.
#
# From the environment: FUZZ_SECONDS, so long each instead (with a higher LIMIT for tests/run.sh); FUZZ_SEED.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

requires command -v clang-14
folder=$build/fuzz
seed=${FUZZ_SEED:-1}
declare -A runs=([requests]=200 [zookeeper]=100 [claim_data]=1000 [range_set]=1000)

export CC=clang-14
[ -e "$folder/build.ninja" ] || meson setup "$folder" "$source_dir" -Dfuzzing=true -Db_sanitize=address,undefined \
    -Db_lundef=false -Doptimization=0 -Ddebug=false --werror >"$dir/build.log" 2>&1 ||
    fail "$(tail -n 20 "$dir/build.log")"
targets=()
for file in "$tests"/fuzz/fuzz_*.c; do
    targets+=("tests/fuzz/$(basename "$file" .c)")
done
ninja -C "$folder" "${targets[@]}" >"$dir/build.log" 2>&1 || fail "$(tail -n 20 "$dir/build.log")"

failed=
for target in "${targets[@]}"; do
    name=${target##*/fuzz_}
    effort="-runs=${runs[$name]:-5000}"
    [ -z "${FUZZ_SECONDS:-}" ] || effort="-max_total_time=$FUZZ_SECONDS"
    requires test -d "$tests/fuzz/corpus/$name"
    mkdir "$dir/$name"
    if ! "$folder/$target" "-seed=$seed" "$effort" -max_len=2000 "-artifact_prefix=$dir/$name/" "$dir/$name" \
        "$tests/fuzz/corpus/$name" >"$dir/$name.out" 2>&1; then
        failed+=" $name"
        for file in "$dir/$name"/{crash,leak,oom,timeout}-*; do
            [ ! -e "$file" ] || echo "$name: input: $(base64 -w 0 "$file")"
        done
    fi
    echo "$name: seed $seed, $(grep -a '^Done' "$dir/$name.out" || tail -n 1 "$dir/$name.out")"
done
[ -z "$failed" ] || fail "found something:$failed"
