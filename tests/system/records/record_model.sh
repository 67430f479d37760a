# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# What the tests by record_player.py share; sourced after functions.sh. Mounts a tmpfs to compare with.

mkdir "$dir/tmpfs"
mount -t tmpfs tmpfs "$dir/tmpfs"

# play NAME SEEDS RULES FOLDER...: makes the sequences; COUNT is another number of seeds, SEED the first one.
play() {
    start "$1" timeout 1000 "$python" "$tests/system/records/record_player.py" "$3" "${SEED:-1}" "${COUNT:-$2}" \
        "$build/tests/system/record_actor" "${@:4}"
}

# played NAME: they have had the outcomes that they should. Bounded by timeout(1), above. Not by finish(): it looks again and
# again, by processes of its own, and once the numbers of processes have come around the shell forgets how this one ended.
played() {
    local number
    number=$(pid "$1")
    wait "$number" || fail "$1 (again: SEED= with COUNT=1)"
    rm "$dir/pids/$1"
    echo "$1: $(<"$dir/$1.out")"
}
