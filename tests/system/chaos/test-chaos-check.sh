#!/bin/bash
# What the tests by chaos.py rest on: that its check finds each violation in what the workers wrote down, and none where there is none.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=chaos.sh
. "$tests/system/chaos/chaos.sh"

printf '%s\n' '0 begin worker-kill A0' '9 begin worker-kill A0' >"$dir/faults"

# finding WORDS RECORD...: what the check finds in the records first has these words; "" for nothing. A record is of flock:
# "MODE RETURNED PROVEN TOKEN" and further fields as NAME=VALUE, or host=HOST. Times are in $unit nanoseconds.
unit=1
finding() {
    local words=$1
    shift
    rm -rf "$dir/records"
    mkdir "$dir/records"
    "$python" - "$tests/system/chaos" "$dir/records" "$unit" "$@" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import chaos
unit = int(sys.argv[3])
for number, text in enumerate(sys.argv[4:]):
    mode, returned, proven, token, *others = text.split()
    returned, proven, host = int(returned) * unit, int(proven) * unit, "A"
    record = chaos.Record((returned - 1, returned, proven, 0, int(token), 0, 0, int(mode == "ex"), 0, 31, 0, chaos.RELEASED))
    for other in others:
        name, value = other.split("=")
        if name == "host":
            host = value
        else:
            setattr(record, name, int(value) * (unit if name in ("served", "revived") else 1))
    with open(f"{sys.argv[2]}/anvil.{host}{number}", "wb") as file:
        file.write(record.pack())
END
    chaos check "$dir/records" "$dir/faults" 1 >"$dir/found" 2>&1 && fail "there was too little to see, and it said nothing"
    expect_equal "what was seen" $# "$(sed -n 's/^acquisitions: \([0-9]*\) .*/\1/p' "$dir/found")"
    if [ -z "$words" ]; then
        grep -qx 'violations: 0' "$dir/found" || fail "found in $*: $(worst "$dir/found")"
    else
        worst "$dir/found" | finds "^VIOLATION: $words" || fail "not found in $*: $words"
    fi
}

finding "" "ex 10 20 1" "ex 20 30 2"
finding "" "sh 10 20 0" "sh 12 22 0" "ex 30 40 0"
finding "" "ex 10 20 0 start=0 end=7" "ex 12 22 0 start=8 end=9"
finding "" "ex 10 0 0" "ex 12 22 0"
finding "both held" "ex 10 20 0" "ex 12 22 0"
finding "both held" "sh 10 20 0" "ex 19 22 0"
finding "both held" "ex 10 20 0 start=0 end=8" "ex 12 22 0 start=8 end=9"
finding "the later one has no greater token" "ex 10 20 2" "ex 21 30 1"
finding "the token of a hold became" "ex 10 20 2 other_token=3"
finding "was fenced, and not so" "ex 10 20 0 revived=25"
finding "" "ex 10 20 0"
expect_equal "the last word" "nobody lost the mount" "$(worst "$dir/found")"

# The lease of host B is revoked between the seconds 15 and 16.
unit=1000000000
printf '%s\n' '15 begin lease-revoke B' '16 returned lease-revoke B' >>"$dir/faults"
heir="ex 16 30 0"
finding "" "ex 10 17 0 host=B" "$heir"
finding "" "ex 10 17 0 host=B served=16" "$heir"
finding "" "ex 10 18 0 host=B served=12" "$heir" "ex 17 18 0 host=B"
finding "both held" "ex 10 17 0 host=B served=17" "$heir"
finding "both held" "ex 17 18 0 host=B served=18" "$heir"
finding "both held" "ex 10 20 0 host=B" "$heir"
finding "both held" "ex 10 17 0 host=C" "$heir"
finding "both held" "ex 10 17 0 host=B" "ex 12 30 0"
finding "both held" "ex 10 14 0 host=B" "ex 12 13 0"
# The host has seen it by second 17, and is given no longer; what it does later is as ever.
echo '17 end lease-revoke B' >>"$dir/faults"
finding "" "ex 10 17 0 host=B" "$heir"
finding "both held" "ex 10 18 0 host=B" "$heir"
echo '40 begin lease-revoke B' >>"$dir/faults"
finding "both held" "ex 10 18 0 host=B" "$heir"
grep -qx "a lease was to be revoked, and it is not known when it was" "$dir/found"
