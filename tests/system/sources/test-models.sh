#!/bin/bash
# The models in tests/models hold in all their states, and each of their mutants breaks what it names. They are of protocols that
# comments in the source argue for; each opens with what it leaves out, what may be lost or late, and what clocks may do.
#
# What can be broken is an assertion, named by a comment at the end of its line, or a formula, `ltl NAME { ... }`. A line
# "-DMUTANT  NAME  why" in the comment that a model opens with is a mutant.
#
#     test-models.sh [MODEL...]    only these
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v spin
requires command -v gcc

models=$tests/models
at_once=2

# search FORMULA [MUTANT]: through all states of model.pml, for what breaks the formula, or without one ("-") the assertions and
# the ends that are none. Prints "holds: N states", "breaks: NAME", or what went wrong.
search() {
    local formula=$1 mutant=${2:-} options=(-DMEMLIM=2000) how=(-m1000000) line name=$1
    # A mutant is found before a better program would be made.
    [ -n "$mutant" ] || options+=(-O)
    if [ "$formula" = - ]; then
        options+=(-DSAFETY -DNOCLAIM)
    else
        options+=(-DNFAIR=3)
        how+=(-a -f -N "$formula")
    fi
    spin -a ${mutant:+"$mutant"} model.pml >spin.out
    gcc -w "${options[@]}" -o pan pan.c
    # Bounded by what it takes of a processor, of which others may leave it little.
    (ulimit -t 100 && exec ./pan "${how[@]}") >pan.out 2>&1 || true
    if [ "$formula" = - ] && grep -q '^pan:1: assertion violated' pan.out; then
        spin -t ${mutant:+"$mutant"} model.pml >trail.out
        line=$(sed -n 's/^spin: [^:]*:\([0-9]*\), Error: assertion violated$/\1/p' trail.out)
        name=$(sed -n "${line:-1}s|.*/\* \([a-z_]*\) \*/\$|\1|p" model.pml)
    fi
    if grep -q '^pan:1: \(assertion violated\|acceptance cycle\)' pan.out; then
        echo "breaks: $name"
    elif grep -q 'errors: 0$' pan.out && ! grep -qE 'not completed|too small|out of memory' pan.out; then
        echo "holds: $(awk '/states, stored/ { print $1 }' pan.out) states"
    else
        cat spin.out pan.out
        echo "not searched: $(grep -m 1 '^pan:1:' pan.out || echo 'to the end')"
    fi
}

# unreached: what model.pml says and never does, of the search before.
unreached() {
    sed -n 's/^\tmodel.pml:\([0-9]*\), state [0-9]*, \(".*"\)$/line \1: \2/p' pan.out | grep -v '"-end-"' || true
}

# try MODEL FORMULA [MUTANT BROKEN]: the last line that is printed begins with PASS or FAIL.
try() {
    local model=$1 formula=$2 mutant=${3:-} broken=${4:-} folder=$dir/$1.$2${3:-} result idle=
    mkdir "$folder"
    cp "$models/$model.pml" "$folder/model.pml"
    cd "$folder"
    result=$(search "$formula" "$mutant")
    [ -n "$mutant" ] || [ "$formula" != - ] || idle=$(unreached)
    if [ -n "$idle" ]; then
        printf '%s\n' "$idle" "FAIL $result, and what it says is not all done"
    elif [[ -z $mutant && $result == holds:* ]] || [[ -n $mutant && $result == "breaks: $broken" ]]; then
        echo "PASS $result"
    else
        echo "FAIL $result${broken:+, not $broken}"
    fi
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in "$models"/*.pml; do
        name=${file##*/}
        names+=("${name%.pml}")
    done
fi

# What is to be tried, a line each: as the arguments of try().
todo() {
    local model formulas formula mutant broken
    for model in "${names[@]}"; do
        formulas=$(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$models/$model.pml")
        for formula in - $formulas; do
            echo "$model $formula"
        done
        sed -n '/\*\//q; s/^ \* *\(-D[A-Z_]* *[a-z_]*\) .*/\1/p' "$models/$model.pml" | while read -r mutant broken; do
            [[ $'\n'$formulas$'\n' == *$'\n'$broken$'\n'* ]] && echo "$model $broken $mutant $broken" || echo "$model - $mutant $broken"
        done
    done
}

mapfile -t lines < <(todo)
for line in "${lines[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n || true
    done
    # shellcheck disable=SC2086 # several
    try $line >"$dir/${line// /,}.log" 2>&1 &
done
wait

failed=()
states=0
for line in "${lines[@]}"; do
    log=$dir/${line// /,}.log
    result=$(tail -n 1 "$log")
    read -r model formula mutant _ <<<"$line"
    printf '%-18s %-18s %-18s %s\n' "$model" "$formula" "${mutant:-}" "$result"
    [[ ! $result =~ holds:\ ([0-9]+) ]] || states=$((states + BASH_REMATCH[1]))
    if [[ $result == PASS* ]]; then rm "$log"; else failed+=("$line"); fi
done
[ ${#failed[@]} -eq 0 ] || fail "${failed[*]}"
echo "$states states in which something holds, ${#lines[@]} searches"
