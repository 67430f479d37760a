#!/bin/bash
# A lock file keeps a small text, such as the PID that old programs write there: read, write, append, truncate, and
# EFBIG beyond 4 KiB.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

start_dlockfs A
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
