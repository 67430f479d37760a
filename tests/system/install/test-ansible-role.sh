#!/bin/bash
# The Ansible role writes a configuration that dlockfs takes: of its defaults, of its example, and of all keys that there are, also for
# several stores.
export own_users=no # no daemon runs
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires "$python" -c 'import jinja2, yaml'
"$python" "$tests/system/install/ansible_role.py" "$source_dir/etc/ansible" "$dir" < <("$dlockfs" --help)
for configuration in defaults example-here; do
    "$dlockfs" --check --require-url --config "$dir/$configuration.ini" "$dir/A" || fail "$configuration: $(<"$dir/$configuration.ini")"
done
expect_equal "stores of the example" \
    "etcd://e1.example,e2.example,e3.example/jobs zookeeper://zk1.example,zk2.example,zk3.example/dlockfs" \
    "$(sed -n 's/^url = //p' "$dir/example.ini" | sort | paste -sd' ')"
for line in 'audit = yes' 'directories = cron jobs' 'etcd_user = dlockfs' 'etcd_password_file = /etc/dlockfs/etcd.password'; do
    grep -qx "$line" "$dir/example.ini" || fail "not in the configuration: $line"
done

# Each key that --help has, with its default or another value, in the section that is its own.
"$dlockfs" --check --config "$dir/keys.ini" "$dir/A" || fail "keys: $(<"$dir/keys.ini")"
"$dlockfs" --help | awk '/^\[/ { section = $1 } match($0, /^  [a-z_]+ =/) { print section, $1 }' | sort >"$dir/expected"
awk '/^\[/ { section = $1 ($1 ~ /]$/ ? "" : "]") } /^[a-z_]+ =/ { print section, $1 }' "$dir/keys.ini" | sort -u >"$dir/found"
test "$(wc -l <"$dir/found")" -ge 60
comm -13 "$dir/found" "$dir/expected" >"$dir/missing"
expect_equal "keys that the role does not write" "" "$(<"$dir/missing")"

# A mistake does not get through: the role has dlockfs look before it puts the file in its place.
grep -q 'validate: dlockfs --check --require-url --config %s' "$source_dir/etc/ansible/roles/dlockfs/tasks/main.yml"
