#!/bin/bash
# Names that turn a terminal's lines around, colour them or hide: what dlockfs and dlockctl write has nothing that is not printable, whatever a
# lock is called; letters stay.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

# A CSI of 8 bits, in UTF-8 and alone; a direction, a space without a width, the end of a line; an escape; a tag.
odd=$'\u009b31m\x9b31m\u202e\u200b\u2028\n\e[31m\u00ad\U000e0041'
letters='ä漢שلक्ी'
name=$odd$letters

# printable FILE...: each is UTF-8, and has no controls but newlines, no format characters, no separators of lines.
printable() {
    "$python" - "$@" <<'EOF' || fail "not printable: see above"
import sys, unicodedata
for path in sys.argv[1:]:
    for line in open(path, encoding="utf-8", newline="\n"):
        for character in line.strip("\n\t"):
            if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Cn"):
                sys.exit(f"{path}: {line!r}")
EOF
}

printf '%s\n' '[mount]' 'audit = yes' >"$dir/A.ini"
start_dlockfs A --config "$dir/A.ini"
export DLOCKFS_MOUNT=$dir/A

# What the daemon says of it.
hold holder "$dir/A/$name"
expect holder held
expect_status 1 flock -n "$dir/A/$name" true
"$dlockctl" break --yes "$name" >"$dir/break.out" 2>&1
release holder
refused "$dlockfs" --foreground "$dir/none/$name" 2>"$dir/mount.out"
refused "$dlockfs" --foreground --no-such="$name" 2>"$dir/option.out"
refused "$dlockfs" --check --store "zookeeper://$name" "$dir/A" 2>"$dir/store.out"
printf '%s\n' "[$name]" "$name = $name" >"$dir/odd.ini"
refused "$dlockfs" --check --config "$dir/odd.ini" "$dir/A" 2>"$dir/config.out"
expect_status 0 cat "$dir/A/.dlockfs/status" "$dir/A/.dlockfs/queues" "$dir/A/.dlockfs/metrics" >"$dir/tree.out"

# What dlockctl says.
hold holder "$dir/A/$name"
expect holder held
for command in show "run -v -n" "wait -v -w 0" "show --nosuch" token break revoke --mount; do
    # shellcheck disable=SC2086
    "$dlockctl" $command "$name" >"$dir/dlockctl-${command// /}.out" 2>&1 || true
done
expect_status 1 "$dlockctl" run -v -n "$name" true 2>"$dir/run.out"
expect_status 66 "$dlockctl" show "free $name" 2>"$dir/free.out"
for command in ls graph doctor "graph --dot"; do
    # shellcheck disable=SC2086
    "$dlockctl" $command >"$dir/dlockctl-${command// /}.out" 2>&1 || true
done
printable "$dir"/*.out "$dir/A.log"
shown="\\xC2\\x9B31m\\x9B31m\\xE2\\x80\\xAE\\xE2\\x80\\x8B\\xE2\\x80\\xA8\\x0A\\x1B[31m\\xC2\\xAD\\xF3\\xA0\\x81\\x81$letters"
for file in dlockctl-ls free mount option; do
    grep -qF "$shown" "$dir/$file.out" || fail "$file: $(<"$dir/$file.out")"
done

# JSON says the very name where that is text, and is JSON where not.
"$dlockctl" --json show "$name" >"$dir/show.json"
"$python" -c 'import json, sys; json.load(sys.stdin)' <"$dir/show.json"
printable "$dir/show.json"
text=${name/$'\x9b'31m/}
hold other "$dir/A/$text"
expect other held
"$dlockctl" --json show "$text" | "$python" -c 'import json, sys
sys.exit(sys.argv[1] not in json.dumps(json.load(sys.stdin), ensure_ascii=False))' "$("$python" -c 'import json, sys; print(json.dumps(sys.argv[1], ensure_ascii=False)[1:-1])' "$text")" ||
    fail "JSON has another name"
release holder
release other
