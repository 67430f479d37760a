#!/bin/bash
# The lines for cron in jobs.md, as they stand there: each runs its program once, and then is skipped without a word.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

page=$source_dir/etc/doc/jobs.md
start_dlockfs A
mkdir "$dir/bin"
ln -s "$dlockctl" "$dir/bin/dlockctl"

# What cron makes of the command: "\%" is a percent sign. Programs are found in $dir/bin.
lines=0
while read -r line; do
    [[ $line =~ ^([^ ]+\ ){5}root\ (.*)$ ]] || fail "not for cron.d: $line"
    command=${BASH_REMATCH[2]//\\%/%}
    command=${command//\/usr\/local\/bin/"$dir/bin"}
    program=$dir/bin/$(sed -n 's|.*/usr/local/bin/\([a-z]*\).*|\1|p' <<<"$line")
    printf '#!/bin/sh\necho x >>"$0.ran"\n' >"$program"
    chmod +x "$program"
    for ((number = 0; number < 2; number++)); do
        expect_equal "$command" "" "$(DLOCKFS_MOUNT=$dir/A PATH=$dir/bin:$PATH sh -c "$command" 2>&1)"
    done
    # The hour may have changed meanwhile.
    case $command in
        *date*) [ "$(wc -l <"$program.ran")" -le 2 ] ;;
        *) expect_equal "runs of $command" 1 "$(wc -l <"$program.ran")" ;;
    esac
    lines=$((lines + 1))
done < <(awk '/^```/ { inside = !inside && $0 == "```"; next } inside && / root / { print }' "$page")
[ "$lines" -ge 3 ] || fail "only $lines lines were found in $page"
