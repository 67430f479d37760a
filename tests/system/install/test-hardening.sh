#!/bin/bash
# What a default build has against mistakes with memory: read-only relocations, all symbols bound at the start, code at a random
# address, guarded stacks and checked calls of the C library, in each program that is installed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v readelf

# has PROGRAM WHAT OPTION PATTERN: what readelf says of it.
has() {
    readelf --wide "$3" "$1" | finds -E "$4" || fail "${1##*/}: no $2"
}

for program in "$dlockfs" "$dlockctl"; do
    has "$program" "read-only relocations" --program-headers '^ *GNU_RELRO '
    has "$program" "binding at the start" --dynamic '\((FLAGS_1)\).* NOW'
    has "$program" "code at any address" --file-header '^ *Type: *DYN '
    has "$program" "guarded stacks" --dyn-syms ' __stack_chk_fail'
    has "$program" "checked calls" --dyn-syms ' __(v?snprintf|memcpy|strcpy|stpcpy|fprintf|read)_chk'
done
