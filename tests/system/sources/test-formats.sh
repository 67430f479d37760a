#!/bin/bash
# What a daemon leaves to the next one is of a format whose number says what may be in it (fs/restart/takeover.h): each word and key
# that is written, by a call or by a row of a table (src/journal/fields.h), is in formats.txt, and so are the numbers. Whoever changes one has to think of the other versions, and then
# to write the list anew: "tests/system/sources/test-formats.sh > tests/system/sources/formats.txt" after "export DLOCKFS_WRITE_FORMATS=yes".
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
list=$source_dir/tests/system/sources/formats.txt

formats() {
    sed -n 's/^#define \(TAKEOVER_FORMAT\|TAKEOVER_READER\|TAKEOVER_OLDEST\|STATE_JOURNAL_FORMAT\)[[:space:]]*\([0-9][0-9]*\|"[^"]*"\).*/\1 \2/p' \
        "$source_dir/fs/restart/takeover.h" "$source_dir/src/journal/form.h"
    find "$source_dir/src" "$source_dir/fs" -name '*.c' -exec cat {} + | tr -s '\n\t ' ' ' |
        grep -oE 'state_(begin|number|unsigned|time|text|bytes|ranges|flag)\(out, "[a-z_]+"|\{"[a-z_]+", FIELD_[A-Z]+\(' |
        sed -e 's/^state_\([a-z]*\)(out, "\([a-z_]*\)"/\1 \2/' -e 's/^{"\([a-z_]*\)", FIELD_\([A-Z]*\)(/\L\2 \1/' \
            -e 's/^\(chars\|word\) /text /' -e 's/^time /number /' | LC_ALL=C sort -u
}

if [ "${DLOCKFS_WRITE_FORMATS:-}" = yes ]; then
    formats
    exit
fi
if ! formats | diff -u "$list" -; then
    echo "failed: what is passed on is not what formats.txt says: see TAKEOVER_FORMAT in fs/restart/takeover.h"
    exit 1
fi
