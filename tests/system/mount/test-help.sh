#!/bin/bash
# --help lists every option and key, --version says the version, and mounting.md has each of them as well.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

"$dlockfs" --help >"$dir/help" 2>"$dir/err"
expect_equal "errors of --help" "" "$(<"$dir/err")"
options=(--store --check --ask --require-url --config --session-timeout --foreground --verbose --version --help)
keys=(mode idle directories allow_other log_level url session_timeout digest_file acl tls_ca tls_certificate tls_key tls_password_file
    sasl_mechanism sasl_user sasl_password_file sasl_realm sasl_service sasl_host
    etcd_user etcd_password_file wait_limit try_limit try_grace linger handoff keep process_ranges file_ranges text_limit on_lost
    on_revoke recipe)
for word in "${options[@]}" "${keys[@]}" MOUNTPOINT; do
    grep -qF -- "$word" "$dir/help" || fail "--help does not have $word"
done
# What it lists exists: none of the options is refused as unknown.
found=$(grep -o -- '--[a-z][a-z-]*' "$dir/help" | sort -u)
expect_equal "options of --help" "$(printf '%s\n' "${options[@]}" | sort)" "$found"

"$dlockfs" --version >"$dir/version"
expect_equal "lines of --version" 1 "$(wc -l <"$dir/version")"
version=$(sed -n "/ version: '/{s/.*version: '\([0-9.]*\)'.*/\1/p;q}" "$source_dir/meson.build")
grep -qF "$version" "$dir/version" || fail "--version says $(<"$dir/version")"

page=$source_dir/etc/doc/mounting.md
if [ -e "$page" ]; then
    for word in "${options[@]}" "${keys[@]}"; do
        grep -qF -- "$word" "$page" || fail "mounting.md does not have $word"
    done
fi
if [ -e "$source_dir/etc/dlockfs.ini" ]; then
    for word in "${keys[@]}"; do
        grep -q "^[#; ]*$word *=" "$source_dir/etc/dlockfs.ini" || fail "etc/dlockfs.ini does not have $word"
    done
fi
