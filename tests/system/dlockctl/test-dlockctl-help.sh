#!/bin/bash
# dlockctl --help and the documentation say the same: commands and options; and each command has a --help of its own.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

page=$source_dir/etc/doc/watching.md
"$dlockctl" --help >"$dir/help" 2>"$dir/err"
expect_equal "errors of --help" "" "$(<"$dir/err")"
version=$(sed -n "/ version: '/{s/.*version: '\([0-9.]*\)'.*/\1/p;q}" "$source_dir/meson.build")
expect_equal "--version" "dlockctl $version" "$("$dlockctl" --version)"

commands=(ls show graph run token check wait revoke break drain undrain hold give top doctor hosts history jobs metrics serve)
expect_equal commands "${commands[*]}" "$(sed -n 's/^  \([a-z][a-z]*\)\( .*\)\?$/\1/p' "$dir/help" | paste -sd' ')"
for command in "${commands[@]}"; do
    "$dlockctl" "$command" --help >"$dir/help-$command"
    grep -q "^Usage: dlockctl $command" "$dir/help-$command"
    grep -q "^| \`${command}[ \`]" "$page" || fail "watching.md does not have the command $command"
done
for option in --mount --json --wide --color --help --version; do
    grep -qF -- "$option" "$dir/help" || fail "--help does not have $option"
done
for option in --exclusive --shared --nonblock --wait --conflict-exit-code --verbose --also --once --every --quiet --min-hold --max-hold --on-lost --on-revoke; do
    grep -qF -- "$option" "$dir/help-run" || fail "run --help does not have $option"
done
for option in --mount --json --wide --on-lost --on-revoke --position --yes; do
    grep -qF -- "$option" "$source_dir"/etc/doc/*.md || fail "etc/doc does not have $option"
done
