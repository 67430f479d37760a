#!/bin/bash
# The simulator finds faults. Each patch in tests/sim/mutants puts one into a copy of the engine; then some simulated
# schedule has to end in a failed check. (That none does without a fault is what the test "sim" shows.)
#
# A patch begins with what the fault is. A line "seeds: N" there says how many schedules may be needed, if it is not
# the usual number, and "first seed: N" where they begin, for faults that few of them find; "store: NAME", which kind of
# service it is. With a line "unit: NAME" it is the test tests/unit/engine/test_NAME.c that has to fail, with "unit:
# FOLDER/NAME" tests/unit/FOLDER/test_NAME.c. A patch may change source files only, no headers: everything else is
# compiled once.
#
#     test-mutants.sh [NAME...]    only these
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v cc
requires command -v patch

patches=$tests/sim/mutants
usual=1000 # schedules
at_once=2

# compile OBJECT SOURCE
compile() {
    cc -O1 -std=gnu11 -D_GNU_SOURCE -DDLOCKFS_VERSION='"0"' -I"$source_dir/src" -I"$source_dir/tests/sim" -c -o "$1" "$2"
}
export -f compile
export source_dir

# What the simulator is made of, as an object each, named by its path: src+engine+queue.o.
compile_sound() {
    mkdir "$dir/sound"
    # shellcheck disable=SC2016
    (cd "$source_dir" && printf '%s\n' tests/sim/*.c src/{claim,engine{,/books,/records},journal,lockfile,stores/local}/*.c src/stores/{tokens,{etcd,redis,zookeeper}/lease}.c src/base/{clock,escape,log_limit,timers}.c) |
        xargs -P "$at_once" -I{} bash -c 'set -e; name=${1//\//+}; compile "$2/${name%.c}.o" "$source_dir/$1"' \
            compile {} "$dir/sound"
}

# What tests of the engine need in place of the simulator's world.
compile_units() {
    local name
    mkdir "$dir/units"
    for name in tests/unit/{engine/fixture,lockfile/lockfile_fixture} src/base/{log,log_queue,printable}; do
        compile "$dir/units/${name//\//+}.o" "$source_dir/$name.c"
    done
}

# Runs a unit test, built from these objects and with the fault: it has to fail.
try_unit() {
    local folder=$1 unit=$2 object objects=("$dir"/units/*.o) status=0
    shift 2
    case $unit in */*) unit=${unit/\//\/test_} ;; *) unit=engine/test_$unit ;; esac
    for object; do
        case $object in */tests+sim+sim.o | */tests+sim+world*) ;; *) objects+=("$object") ;; esac
    done
    compile "$folder/unit.o" "$source_dir/tests/unit/$unit.c"
    cc -o "$folder/unit" "$folder/unit.o" "${objects[@]}" -lcmocka -lxxhash
    (ulimit -t 100 && exec "$folder/unit") >"$folder/unit.out" 2>&1 || status=$?
    tail -n 5 "$folder/unit.out"
    echo # it may have ended in a line
    if [ "$status" -eq 0 ]; then
        echo "FAIL not found by $unit.c"
    else
        echo "PASS $(grep -m 1 -E 'LINE|Assertion' "$folder/unit.out" | sed 's/.*--- //')"
    fi
}

# Builds the simulator with a fault and runs it. The last line that is printed starts with PASS or FAIL.
try() {
    local name=$1 patch=$patches/$1.patch folder=$dir/$1 file files object seeds first store holds unit status=0 found objects=() options=()
    mkdir -p "$folder/objects"
    mapfile -t files < <(sed -n 's|^+++ b/||p' "$patch")
    (cd "$source_dir" && cp --parents "${files[@]}" "$folder")
    if ! patch --batch --fuzz=0 -p1 -d "$folder" <"$patch" >"$folder/patch.out" 2>&1; then
        cat "$folder/patch.out"
        echo "FAIL the patch does not apply"
        return
    fi
    for file in "${files[@]}"; do
        object=${file//\//+}
        object=${object%.c}.o
        if [ ! -e "$dir/sound/$object" ]; then
            echo "FAIL it changes $file: only source files of the simulator can be"
            return
        fi
        if ! compile "$folder/objects/$object" "$folder/$file"; then
            echo "FAIL it does not compile"
            return
        fi
    done
    for file in "$dir"/sound/*.o; do
        [ -e "$folder/objects/${file##*/}" ] && objects+=("$folder/objects/${file##*/}") || objects+=("$file")
    done
    unit=$(sed -n '/^---/q; s/^unit: //p' "$patch")
    if [ -n "$unit" ]; then
        try_unit "$folder" "$unit" "${objects[@]}"
        return
    fi
    cc -o "$folder/sim" "${objects[@]}" -lxxhash
    seeds=$(sed -n '/^---/q; s/^seeds: //p' "$patch")
    first=$(sed -n '/^---/q; s/^first seed: //p' "$patch")
    store=$(sed -n '/^---/q; s/^store: //p' "$patch")
    # In worlds of which all have holds, with the service of that kind.
    holds=$(sed -n '/^---/q; s/^holds: //p' "$patch")
    [ -z "$holds" ] || options=(--holds)
    # Bounded by what it takes of a processor, of which others may leave it little.
    (ulimit -t 100 && exec "$folder/sim" --seed "${first:-1}" --seeds "${seeds:-$usual}" --store "${holds:-${store:-zookeeper}}" "${options[@]}" --until-failure) \
        >"$folder/sim.out" 2>&1 || status=$?
    tail -n 5 "$folder/sim.out"
    found=$(grep -m 1 '^sim: seed' "$folder/sim.out" || true)
    # An abort ends the simulator by a signal, as the engine's invariants do; what was said before is why.
    if [ -n "$found" ] && { [ "$status" -eq 1 ] || [ "$status" -eq 134 ]; }; then
        echo "PASS ${found#sim: }"
    elif [ "$status" -eq 0 ]; then
        echo "FAIL not found in ${seeds:-$usual} schedules"
    else
        echo "FAIL the simulator ended with $status"
    fi
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in "$patches"/*.patch; do
        name=${file##*/}
        names+=("${name%.patch}")
    done
fi

compile_sound
compile_units
for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n || true
    done
    try "$name" >"$dir/$name.log" 2>&1 &
done
wait

missed=()
for name in "${names[@]}"; do
    result=$(tail -n 1 "$dir/$name.log")
    printf '%-24s %s\n' "$name" "$result"
    case $result in PASS*) rm "$dir/$name.log" ;; *) missed+=("$name") ;; esac
done
[ ${#missed[@]} -eq 0 ] || fail "not found: ${missed[*]}"
