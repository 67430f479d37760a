#!/bin/bash
# README.md and the pages in etc/doc: links lead somewhere, also where they are installed; options, keys, commands, paths and tests that
# they show exist; README.md is short and names every page; the pictures are what their source draws. And documents.py finds mistakes.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

pages=("$source_dir"/README.md "$source_dir"/etc/doc/*.md)
documents() {
    "$python" "$tests/system/sources/documents.py" "$@"
}
documents "$source_dir" "$dlockfs" "$dlockctl" "${pages[@]}" >"$dir/found"
expect_equal "what is wrong in the documentation" "" "$(<"$dir/found")"

lines=$(wc -l <"$source_dir/README.md")
test "$lines" -le 300 || fail "README.md has $lines lines, expected at most 300"
for page in "${pages[@]:1}"; do
    grep -q "^|.*](etc/doc/${page##*/}).*|$" "$source_dir/README.md" || fail "README.md does not list ${page##*/}"
done

DESTDIR=$dir/root meson install -C "$build" --no-rebuild >"$dir/install.log" 2>&1 || fail "$(tail -n 5 "$dir/install.log")"
installed=$(dirname "$(find "$dir/root" -name README.md)")
for page in "${pages[@]}"; do
    test -e "$installed/${page##*/}" || fail "not installed: ${page##*/}"
done
documents - - - "$installed"/*.md >"$dir/found"
expect_equal "what is wrong in the documentation that is installed" "" "$(<"$dir/found")"

mkdir "$dir/pictures"
"$python" "$source_dir/etc/doc/pictures.py" "$dir/pictures"
for picture in "$dir"/pictures/*.svg; do
    cmp "$picture" "$source_dir/etc/doc/${picture##*/}" || fail "run etc/doc/pictures.py etc/doc: ${picture##*/} is another picture"
    grep -q "](${picture##*/})" "$source_dir"/etc/doc/*.md || fail "no page shows ${picture##*/}"
done

# One mistake of each kind.
# wrong TEXT WHAT-IS-SAID
wrong() {
    printf '# A page\n\n%s\n' "$1" >"$dir/page.md"
    documents "$source_dir" "$dlockfs" "$dlockctl" "$dir/page.md" >"$dir/found"
    expect_equal "what is said of: $1" "page.md:3: $2" "$(<"$dir/found")"
}
wrong '[a](none.md)' "there is no none.md"
wrong '[a](#a-pages)' "page.md has no section #a-pages"
wrong '`dlockfs --stor URL /run/dlocks`' "dlockfs has no option --stor"
wrong '`--stor URL`' "neither dlockfs nor dlockctl has an option --stor"
wrong '`dlockctl list`' "dlockctl has no command list"
wrong '`dlockctl wait --position 1 a`' "dlockctl has no option --position"
wrong '`try_limt`' "there is no try_limt"
wrong '`recpie = kazoo`' "there is no key recpie"
wrong '`-o idel=1s`' "there is no key idel"
wrong '`dlockfs -o idel=1s /run/dlocks`' "there is no key idel"
wrong $'```ini\nhandof = 1\n```' "there is no key handof"
wrong $'```ini\n[lock "a"]\n```' 'there is no section [lock "a"]'
wrong $'```ini\n[locks]\nhandoff = many\n```' \
    'dlockfs: error: the configuration:2: handoff: bad value "many", expected a number from 0 to 1000000'
wrong $'```sh\nx=$(dlockctl tokn 9)\n```' "dlockctl has no command tokn"
wrong '`src/engine/none.h`' "there is no src/engine/none.h"
wrong '`LIMIT=9 tests/run.sh sim none`' "there is no test none"
wrong '`etc/quickstart.sh --consul`' "etc/quickstart.sh has no --consul"
