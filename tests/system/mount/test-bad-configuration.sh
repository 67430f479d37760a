#!/bin/bash
# A mistake in the configuration ends the start with one clear line, file:line: what, and a non-zero status; nothing is mounted.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

mkdir "$dir/M"
config=$dir/dlockfs.ini

# rejected LINE TEXT...: with the file's contents on stdin, one message about that line with all these texts.
rejected() {
    local line=$1 text
    shift
    cat >"$config"
    for mode in --foreground ""; do
        # shellcheck disable=SC2086
        refused timeout "$deadline" "$dlockfs" $mode --config "$config" "$dir/M" >"$dir/out" 2>"$dir/err"
        expect_equal "output on stdout" "" "$(<"$dir/out")"
        expect_equal "lines for: $(<"$config")" 1 "$(wc -l <"$dir/err")"
        for text in "$config:$line:" expected "$@"; do
            grep -qF -- "$text" "$dir/err" || fail "'$text' is not in: $(<"$dir/err")"
        done
        not_mounted "$dir/M" || fail "mounted with a bad configuration"
    done
}

rejected 2 colour <<'END'
[mount]
colour = red
END
rejected 1 lokcs <<'END'
[lokcs]
wait_limit = 5s
END
rejected 3 idle soon <<'END'
# a comment
[mount]
idle = soon
END
rejected 2 idle 10parsecs <<'END'
[mount]
idle = 10parsecs
END
rejected 2 idle -5s <<'END'
[mount]
idle = -5s
END
rejected 2 idle <<'END'
[mount]
idle = 99999999999999999999s
END
rejected 2 mode 9999 <<'END'
[mount]
mode = 9999
END
rejected 2 allow_other maybe <<'END'
[mount]
allow_other = maybe
END
rejected 3 session_timeout 0 <<'END'
[store]
url = local:
session_timeout = 0
END
rejected 2 url consul://localhost <<'END'
[store]
url = consul://localhost
END
rejected 2 url <<'END'
[store]
url = zookeeper://
END
rejected 2 url 99999 <<'END'
[store]
url = zookeeper://localhost:99999/locks
END
rejected 2 url etcd://localhost:99999 <<'END'
[store]
url = etcd://localhost:99999/locks
END
rejected 3 'etcd_user is for etcd' ZooKeeper <<'END'
[store]
url = zookeeper://localhost
etcd_user = hosts
END
rejected 1 'prefix ""' <<'END'
[store ""]
url = zookeeper://localhost
END
rejected 1 'prefix "/cron"' <<'END'
[store "/cron"]
url = zookeeper://localhost
END
rejected 3 'prefix "cron/"' <<'END'
[store]
url = local:
[store "cron/"]
url = zookeeper://localhost
END
rejected 1 'prefix "cron/*"' pattern <<'END'
[store "cron/*"]
url = zookeeper://localhost
END
rejected 3 '[store "cron"] a second time' <<'END'
[store "cron"]
url = zookeeper://localhost
[store "cron"]
url = zookeeper://elsewhere
END
rejected 1 '[store "cron"] without a url' <<'END'
[store "cron"]
session_timeout = 5s
[mount]
idle = 10s
END
rejected 2 url consul://localhost <<'END'
[store "cron"]
url = consul://localhost
END
rejected 1 '[mount "cron"]' '[store "prefix"]' <<'END'
[mount "cron"]
idle = 10s
END
rejected 2 acl everybody <<'END'
[store]
acl = everybody
END
rejected 1 'acl = creator' digest_file <<'END'
[store "cron"]
url = zookeeper://localhost
acl = creator
END
# The message of a file with a secret does not contain any of it.
secret=$dir/secret
bad_secret() {
    rejected 3 digest_file "$secret" "$@" <<END
[store]
url = zookeeper://localhost
digest_file = $secret
END
    if grep -q xyzzy "$dir/err"; then
        fail "tells the secret: $(<"$dir/err")"
    fi
}
echo hosts:xyzzy >"$secret"
chmod 640 "$secret"
bad_secret 'mode 0640' 0600
chmod 600 "$secret"
chown 12345 "$secret"
bad_secret 'user 12345'
chown 0 "$secret"
printf 'hosts:xyzzy\nxyzzy\n' >"$secret"
bad_secret "$secret:2: no colon" user:password
rejected 2 wait_limit often <<'END'
[locks "backup/*"]
wait_limit = often
END
rejected 3 on_lost SIGSTOP "SIGTERM, SIGKILL" <<'END'
[locks "backup/*"]
wait_limit = 1m
on_lost = SIGSTOP
END
rejected 2 url <<'END'
[locks "backup/*"]
url = local:
END
rejected 1 "" <<'END'
idle = 5s
END
rejected 2 "" <<'END'
[mount]
this is no setting
END

# Certificates and keys are read by --check, before they are needed.
# unusable FILE TEXT: what --check says of the configuration.
unusable() {
    refused "$dlockfs" --check --config "$config" "$dir/M" 2>"$dir/err"
    expect_equal "lines" 1 "$(wc -l <"$dir/err")"
    grep -qF "TLS: $1: $2, expected certificates and their key as PEM" "$dir/err" || fail "$(<"$dir/err")"
}
if command -v openssl >/dev/null && grep -q HAVE_ETCD "$build/compile_commands.json"; then
    for name in ours other; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name" \
            -keyout "$dir/$name.key" -out "$dir/$name.pem" 2>/dev/null
        chmod 600 "$dir/$name.key"
    done
    printf '%s\n' '[store "a"]' 'url = etcd://localhost' "tls_ca = $dir/ca.pem" "tls_certificate = $dir/host.pem" "tls_key = $dir/host.key" >"$config"
    echo nothing >"$dir/ca.pem"
    cp "$dir/ours.pem" "$dir/host.pem"
    cp "$dir/other.key" "$dir/host.key"
    unusable "$dir/ca.pem" "no certificate or crl found"
    cp "$dir/other.pem" "$dir/ca.pem"
    unusable "$dir/host.key" "key values mismatch"
    cp "$dir/ours.key" "$dir/host.key"
    "$dlockfs" --check --config "$config" "$dir/M"
    : >"$dir/host.pem"
    unusable "$dir/host.pem" "no start line"
fi

# A file that is not there is a mistake as well.
refused timeout "$deadline" "$dlockfs" --config "$dir/none.ini" "$dir/M" 2>"$dir/err"
expect_equal "lines" 1 "$(wc -l <"$dir/err")"
grep -qF "$dir/none.ini" "$dir/err" || fail "the file is not named: $(<"$dir/err")"

# A good one works, the example of the distribution too, and options of the command line win over it.
cat >"$config" <<'END'
[mount]
mode = 0750
idle = 10s
directories = backup jobs/nightly

[store]
url = local:
session_timeout = 10s

[store "jobs"]
url = local:
session_timeout = 5s

[locks]
wait_limit = 1m

[locks "backup/*"]
try_limit = 500ms
END
start_dlockfs A --config "$config" -o mode=0711
expect_equal "mode" 711 "$(stat -c %a "$dir/A")"
test -d "$dir/A/backup"
test -d "$dir/A/jobs/nightly"
flock -n "$dir/A/jobs/nightly/report" true
if [ -e "$source_dir/etc/dlockfs.ini" ]; then
    start_dlockfs E --config "$source_dir/etc/dlockfs.ini"
    flock -n "$dir/E/job" true
fi
