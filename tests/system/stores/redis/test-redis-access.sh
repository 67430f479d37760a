#!/bin/bash
# A user of Redis who has the rights that the page on Redis names is enough for all that dlockfs asks: nothing is refused. One with
# another password locks nothing, and status and log say why.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

start_redis
read -r -a rights < <(sed -n 's/^ACL SETUSER //p' "$source_dir/etc/doc/redis.md")
[ ${#rights[@]} -gt 10 ] || fail "the page names no rights"
redis ACL SETUSER "${rights[@]}" >/dev/null
redis ACL SETUSER default off >/dev/null
redis_login=(--user dlockfs --pass PASSWORD --no-auth-warning)
(umask 077 && printf '%s\n' PASSWORD >"$dir/password" && printf '%s\n' wrong >"$dir/wrong")
for name in password wrong; do
    printf '%s\n' '[store]' 'redis_user = dlockfs' "redis_password_file = $dir/$name" >"$dir/$name.ini"
done

for host in A B; do
    start_dlockfs "$host" --session-timeout 3s --config "$dir/password.ini"
done
call holder "$dir/A/job" open ex token fsync hold
expect holder "fsync ok"
hold waiter "$dir/B/job"
wait_until "$deadline" asleep waiter
"$dlockctl" --mount "$dir/B" show job >/dev/null
read -r -t 2 -u "$nothing" || true # it is renewed in that time
release holder
expect waiter held
release waiter
stats=$(redis INFO commandstats)
if grep 'rejected_calls=[1-9]' <<<"$stats"; then
    fail "the page names too few rights"
fi

start_dlockfs C --session-timeout 3s --config "$dir/wrong.ini"
refused flock -n "$dir/C/job" true
grep -q '^store_error=' "$dir/C/.dlockfs/status" || fail "the status does not say why: $(<"$dir/C/.dlockfs/status")"
grep -q 'WRONGPASS' "$dir/C.log" || fail "the log does not say why"
