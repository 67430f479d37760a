#!/bin/bash
# The fuzz targets of tests/fuzz with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer: a build of their own,
# with clang. Each target begins with its corpus and is run so many times, with the seed that is printed.
#
# From the environment: FUZZ_SECONDS, so long each instead (with a higher LIMIT for tests/run.sh); FUZZ_SEED.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

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
rm "$dir/build.log" # or its end would be shown behind the inputs

# kinds NAME: of what libFuzzer has kept of the target.
kinds() {
    find "$dir/$1" -regextype posix-extended -regex '.*/(crash|leak|oom|timeout)-[0-9a-f]+' -printf '%f\n' | sed 's/-.*//' |
        sort -u | paste -sd' '
}

# why NAME: the property that does not hold, or what a sanitizer or libFuzzer says.
why() {
    local pattern
    for pattern in 'does not hold: ' 'runtime error: ' '^SUMMARY: '; do
        grep -a -m 1 "$pattern" "$dir/$1.txt" && return
    done
    tail -n 1 "$dir/$1.txt"
}

# Where all that is said goes into one file, in the order in which it was said.
export ASAN_OPTIONS=$ASAN_OPTIONS:log_path=stderr UBSAN_OPTIONS=$UBSAN_OPTIONS:log_path=stderr

found=() # targets
for target in "${targets[@]}"; do
    name=${target##*/fuzz_}
    effort="-runs=${runs[$name]:-5000}"
    [ -z "${FUZZ_SECONDS:-}" ] || effort="-max_total_time=$FUZZ_SECONDS"
    inputs=("$tests/fuzz/corpus/$name"/*) # in the same order wherever it runs
    requires test -e "${inputs[0]}"
    mkdir "$dir/$name"
    (IFS=, && printf '%s' "${inputs[*]}") >"$dir/$name.inputs" # no newline, which would be of a name
    "$folder/$target" "-seed=$seed" "$effort" -max_len=2000 "-artifact_prefix=$dir/$name/" "-seed_inputs=@$dir/$name.inputs" \
        "$dir/$name" >"$dir/$name.txt" 2>&1 || found+=("$name")
    echo "$name: seed $seed, $(grep -a '^Done' "$dir/$name.txt" || tail -n 1 "$dir/$name.txt")"
done
[ ${#found[@]} -gt 0 ] || exit 0

# The end of the log is what is shown of it: the inputs are there.
reason=
for name in "${found[@]}"; do
    echo "--- $name:"
    grep -a -m 1 -A 40 -E 'does not hold: |runtime error: |ERROR: ' "$dir/$name.txt" || tail -n 40 "$dir/$name.txt"
    reason+="; $name ($(kinds "$name")): $(why "$name")"
done
for name in "${found[@]}"; do
    for file in "$dir/$name"/{crash,leak,oom,timeout}-*; do
        [ ! -e "$file" ] || echo "$name: ${file##*/}: $(base64 -w 0 "$file")"
    done
done
fail "found something with seed $seed${reason//$'\n'/ }"
