#!/bin/bash
# A lock file keeps a small text, such as the PID that old programs write there: read, write, append, truncate, and
# EFBIG beyond 4 KiB, or what text_limit says.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

printf '%s\n' '[locks "long*"]' 'text_limit = 1048576' '[locks "none"]' 'text_limit = 0' >"$dir/A.ini"
start_dlockfs A --config "$dir/A.ini"
file=$dir/A/job

exec 9<>"$file" # keeps the name in use
echo $$ >"$file"
expect_equal "pid" $$ "$(<"$file")"
echo short >"$file"
expect_equal "overwritten" short "$(<"$file")"
echo more >>"$file"
expect_equal "appended" "short more" "$(paste -sd' ' "$file")"
expect_equal "size" 11 "$(stat -c %s "$file")"
truncate -s 5 "$file"
expect_equal "cut" short "$(<"$file")"
truncate -s 8 "$file"
expect_equal "extended with zeros" "73 68 6f 72 74 00 00 00" "$(od -An -tx1 "$file" | sed 's/^ //')"
: >"$file"
expect_equal "emptied" 0 "$(stat -c %s "$file")"
printf 'through the first handle' >&9
expect_equal "through another handle" "through the first handle" "$(<"$file")"

call big "$file" open truncate=0 fill=4096 size write=x size truncate=4097 truncate=4096 seek=4095 write=yz size seek=5000 \
    write=x truncate=3 seek=0 write=abc read close append write=d close open-ro read write=x
finish big
expect_equal "limits" "open ok,truncate ok,fill 4096,size 4096,write EFBIG,size 4096,truncate EFBIG,truncate ok,\
seek ok,write EFBIG,size 4096,seek ok,write EFBIG,truncate ok,seek ok,write 3,read 'abc',close ok,append ok,write 1,close ok,\
open-ro ok,read 'abcd',write EBADF" "$(paste -sd, "$dir/big.out")"
head -c 4096 /dev/zero | tr '\0' x >"$file"
expect_equal "full" 4096 "$(wc -c <"$file")"
refused dd if=/dev/zero of="$file" bs=4097 count=1 status=none 2>"$dir/dd.err" ||
    finds 'too large' "$dir/dd.err"

# As a daemon does: lock, write the pid, and whoever is refused reads it.
hold holder "$file"
expect holder held
printf '%s\n' "$(pid holder)" >"$file"
if ! flock -n "$file" true; then
    expect_equal "who holds" "$(pid holder)" "$(<"$file")"
fi

# A long text: written by requests as large as the kernel makes them, and by small ones; changed in the middle.
head -c 1048576 /dev/urandom >"$dir/text"
long=$dir/A/long
exec 8<>"$long"
cat "$dir/text" >"$long"
cmp "$dir/text" "$long"
expect_equal "one byte more" "append ok,write EFBIG,truncate EFBIG,size 1048576" \
    "$(timeout "$deadline" "$python" "$tests/lib/calls.py" "$long" append write=x truncate=1048577 size | paste -sd,)"
dd if="$dir/text" of="$long" bs=4096 status=none
cmp "$dir/text" "$long"
for target in "$dir/text" "$long"; do
    printf 'changed' | dd of="$target" bs=1 seek=700000 conv=notrunc status=none
    truncate -s 800001 "$target"
    truncate -s 900000 "$target"
    echo end >>"$target"
done
cmp "$dir/text" "$long"
expect_equal "blocks" 1760 "$(stat -c %b "$long")"
call none "$dir/A/none" open write=x truncate=1 truncate=0 size
finish none
expect_equal "no text" "open ok,write EFBIG,truncate EFBIG,truncate ok,size 0" "$(paste -sd, "$dir/none.out")"

# Another program that goes on has it.
send_signal A USR2
wait_until "$deadline" finds ' goes on with version ' "$dir/A.log"
cmp "$dir/text" "$long"
echo more >>"$long"
echo more >>"$dir/text"
send_signal A USR2
goes_on() {
    [ "$(grep -c ' goes on with version ' "$dir/A.log")" -eq 2 ]
}
wait_until "$deadline" goes_on
cmp "$dir/text" "$long"
# Where the limit is lowered, a text stays, and does not become longer.
sed -i 's/1048576/10/' "$dir/A.ini"
send_signal A HUP
wait_until "$deadline" finds 'read anew' "$dir/A.log"
refused truncate -s 1000000 "$long"
cmp "$dir/text" "$long"
truncate -s 9 "$long"
echo >>"$long"
cmp <(head -c 9 "$dir/text" && echo) "$long"
