#!/bin/bash
# --help, the parser's keys, the example and the manual pages say the same: options, keys, defaults, what they may be, commands,
# exit statuses, messages. And the pages are well-formed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

man=$source_dir/etc/man
requires command -v mandoc
for page in dlockfs.8 dlockctl.1 dlockfs.ini.5 dlockfs-keeper.8; do
    mandoc -T lint -W warning "$man/$page" || fail "$page is not well-formed"
done

# Keys: section, key, default and values, in the same order. --help has them in lines like "  key = default    values".
"$dlockfs" --help | awk '/^\[/ { section = substr($1, 2, length($1) - 2) }
    match($0, /^  [a-z_]+ = [^ ]*  +/) { print section "\t" $1 "\t" ($0 ~ / =  / ? "" : $3) "\t" substr($0, RLENGTH + 1) }' >"$dir/keys"
test "$(wc -l <"$dir/keys")" -ge 24
awk '/^\.Ss \[/ { section = substr($2, 2, length($2) - 2) }
    values { print section "\t" key "\t" fallback "\t" $0; values = 0 }
    /^\.It Ic / { key = $3; fallback = $5; values = 1 }' "$man/dlockfs.ini.5" >"$dir/manual-keys"
diff -u "$dir/keys" "$dir/manual-keys" || fail "the keys differ"
awk '/^\[/ { section = substr($1, 2, length($1) - 2) } /^#\[/ { section = "" }
    section && match($0, /^#?[a-z_]+ =/) { sub(/^#/, ""); print section "\t" $1 "\t" $3 }' "$source_dir/etc/dlockfs.ini" >"$dir/example-keys"
diff -u <(cut -f1-3 "$dir/keys") "$dir/example-keys" || fail "the example differs"

# text PAGE: as it is read.
text() {
    mandoc -T ascii "$man/$1" | sed $'s/.\b//g'
}
options() {
    grep -oE '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}
"$dlockfs" --help | options >"$dir/options"
test -s "$dir/options"
diff -u "$dir/options" <(text dlockfs.8 | sed -n '/^OPTIONS/,/^SIGNALS/p' | options) || fail "the options of dlockfs differ"

# What is logged, and what it means.
mapfile -t sources < <(find "$source_dir"/{fs,src} -name '*.c' ! -path '*/dlockctl/*' ! -path '*/keeper/*')
# messages_known PAGE KIND SOURCE...: the page has all messages of that kind.
messages_known() {
    "$python" "$tests/system/sources/messages.py" "$man/$1" "${@:2}" >"$dir/unknown-messages"
    expect_equal "messages that $1 does not have" "" "$(<"$dir/unknown-messages")"
}
messages_known dlockfs.8 log "${sources[@]}"
messages_known dlockctl.1 fail "$source_dir"/src/{dlockctl/*.c,dlockctl/commands/*.c,web/*.c}
messages_known dlockfs-keeper.8 report "$source_dir"/src/keeper/*.c
messages_known dlockfs.ini.5 fail "$source_dir"/src/config/*.c
messages_known dlockfs.ini.5 why "$source_dir"/src/{base,config}/*.c
messages_known dlockfs.8 why "$source_dir"/fs/{*.c,kernel/*.c}

# dlockfs-keeper: its options.
diff -u <("$build/src/keeper/dlockfs-keeper" --help | options) <(text dlockfs-keeper.8 | sed '/^DIAGNOSTICS/q' | options) ||
    fail "the options of dlockfs-keeper differ"

# dlockctl: commands and the options of all of them, exit statuses.
"$dlockctl" --help >"$dir/help"
sed -n '/^Options/q;s/^  \([a-z][a-z]*\).*/\1/p' "$dir/help" >"$dir/commands"
test -s "$dir/commands"
diff -u "$dir/commands" <(awk 'long { print $2; long = 0 } /^\.It Xo$/ { long = 1 } /^\.It Ic / { print $3 }' "$man/dlockctl.1") ||
    fail "the commands differ"
while read -r command; do
    "$dlockctl" "$command" --help
done <"$dir/commands" >>"$dir/help"
diff -u <(options <"$dir/help") <(text dlockctl.1 | options) || fail "the options of dlockctl differ"
awk '/^For run/ { exit } /^  ? ?[0-9 ][0-9]  / { if (text) print text; text = $1 "|"; $1 = "" }
    text { sub(/^ +/, ""); text = text (text ~ /\|$/ ? "" : " ") $0 } END { print text }' "$dir/help" >"$dir/statuses"
diff -u "$dir/statuses" <(sed -n '/^\.Sh EXIT/,/^\.Sh EXAMPLES/{/^\.It /{N;s/^\.It \(.*\)\n/\1|/p}}' "$man/dlockctl.1") ||
    fail "the statuses differ"

# The completion offers them.
# complete WORD...: what is offered for the last one.
complete_words() {
    PATH=$dir/bin:$PATH bash -c '
        . "$0/$1"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        compopt() { :; }
        "_$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$source_dir/etc/completion" "$@"
}
mkdir "$dir/bin"
ln -s "$dlockfs" "$dlockctl" "$dir/bin"
diff -u "$dir/commands" <(complete_words dlockctl "") || fail "dlockctl: the commands offered differ"
expect_equal "dlockctl sh" show "$(complete_words dlockctl sh)"
expect_equal "dlockctl run --on" "--once --on-lost --on-revoke" "$(complete_words dlockctl run --on | paste -sd' ')"
expect_equal "dlockfs --s" "--store --session-timeout" "$(complete_words dlockfs --s | paste -sd' ')"
diff -u <(awk -F'\t' '!seen[$2]++ { print $2 "=" }' "$dir/keys") <(complete_words dlockfs -o "") || fail "dlockfs: the keys offered differ"
expect_equal "dlockfs -o idle=1s,mo" "idle=1s,mode=" "$(complete_words dlockfs -o idle=1s,mo)"
start_dlockfs A
hold holder "$dir/A/nightly"
expect holder held
expect_equal "dlockctl show n" nightly "$(complete_words dlockctl --mount "$dir/A" show n)"
release holder
