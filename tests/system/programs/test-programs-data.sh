#!/bin/bash
# Programs that make lock files beside their data, or run commands under their lock: on three hosts nothing is lost, each host sees the lock
# of another one, and it stays when its holder is killed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=programs.sh
. "$tests/system/programs/programs.sh"

for program in emacs git cvs logrotate gpg useradd; do
    requires command -v "$program"
done

start_store
start_hosts A B C
: >"$work/edited"

# Whoever finds a lock taken waits a second, some half a minute: a hundredth of that here.
cat >"$dir/hasty.c" <<'END2'
#include <sys/select.h>
#include <unistd.h>

unsigned sleep(unsigned seconds)
{
	usleep(seconds * 10000);
	return 0;
}
END2
cc -shared -fPIC -o "$work/hasty.so" "$dir/hasty.c"

check counts emacs 1 5
check seen emacs
check stays emacs ".#${work//\//!}!edited"

# The index is the folder's, everything else is outside.
mkdir "$work/tree"
git init -q --bare "$work/repository"
git -C "$work/repository" config filter.hook.clean 'if rm "$ONCE" 2>/dev/null; then eval "$UNDER_LOCK" >&2; fi; cat'
echo '* filter=hook' >"$work/repository/info/attributes"
git_index() {
    counts git 1 3
    for host in $here; do
        expect_equal "files in the index on host $host" 9 \
            "$(GIT_INDEX_FILE=$dir/$host/files/index git --git-dir="$work/repository" ls-files | wc -l)"
    done
}
check git_index git
check seen git
check stays git index.lock

# The repository is shared, but each host has its own CVSROOT: the path of the locks is in there.
mkdir "$work/module"
printf '#!/bin/bash\neval "$UNDER_LOCK"\n' >"$work/hook"
chmod +x "$work/hook"
for host in $here; do
    cvs -d "$work/cvs-$host" init
    ln -s "$work/module" "$work/cvs-$host/module"
    echo "LockDir=$dir/$host/files" >>"$work/cvs-$host/CVSROOT/config"
    echo "ALL $work/hook %p" >>"$work/cvs-$host/CVSROOT/commitinfo"
done
check counts cvs 1 3
check seen cvs
check stays cvs module # whose locks are in a folder of that name

# logrotate replaces the file that it has locked: one that opened it before gets the lock of a file that is gone, beside the next one (so on
# any file system). Here it is written in place.
cat >"$dir/in-place.c" <<'END2'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rename(const char *from, const char *to)
{
	char text[4096];
	int source, target;
	ssize_t bytes;

	if (strcmp(to + strlen(to) - strlen("/logrotate"), "/logrotate") != 0)
		return renameat(AT_FDCWD, from, AT_FDCWD, to);
	source = open(from, O_RDONLY);
	target = open(to, O_WRONLY | O_TRUNC);
	bytes = read(source, text, sizeof(text));
	if (bytes < 0 || write(target, text, (size_t)bytes) != bytes || close(target) < 0)
		abort();
	close(source);
	return unlink(from);
}
END2
cc -shared -fPIC -o "$work/in-place.so" "$dir/in-place.c"
check counts logrotate 1 5
check seen logrotate

# gpg: a home with so few keys that each of its files has at most 4 KiB. It looks at the keyring also without the lock, whose holder takes
# the former keyring away, as a copy, before it puts the next one there: here it keeps no copy.
cat >"$dir/no-copy.c" <<'END2'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int rename(const char *from, const char *to)
{
	return to[strlen(to) - 1] == '~' ? 0 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}
END2
cc -shared -fPIC -o "$work/no-copy.so" "$dir/no-copy.c"

# gpg_imports PROGRAM: each host imports keys of its own, at the same time; all have all of them then. The keyring is there before: one that
# is made anew is empty at first, and who opens it then takes it for one of the older format.
gpg_imports() {
    local host key names=()
    mkdir "$dir/A/files/gnupg"
    chmod 700 "$dir/A/files/gnupg"
    gpg --homedir "$dir/A/files/gnupg" --batch --no-autostart --list-keys >"$dir/gpg-made.out" 2>&1
    for host in $here; do
        [ -e "$dir/$host/files/gnupg" ] || install -d -m 700 "$dir/$host/files/gnupg"
        for key in 1 2; do
            names+=("gpg-$host$key")
            start "${names[-1]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" env LD_PRELOAD="$work/no-copy.so" \
                gpg --homedir "$dir/$host/files/gnupg" --batch --no-autostart --import "$work/$host$key.pub"
        done
    done
    for key in "${names[@]}"; do
        finish "$key" || fail "$key: $(<"$dir/$key.out")"
    done
    for host in $here; do
        expect_equal "gpg: keys on host $host" 6 \
            "$(gpg --homedir "$dir/$host/files/gnupg" --batch --no-autostart --with-colons --list-keys 2>/dev/null | grep -c '^pub')"
    done
}

# gpg_waits PROGRAM: for the lock of another host, as gpg makes it.
gpg_waits() {
    printf '%10d\nA\n' $$ >"$dir/A/files/gnupg/temporary"
    ln "$dir/A/files/gnupg/temporary" "$dir/A/files/gnupg/pubring.kbx.lock"
    rm "$dir/A/files/gnupg/temporary"
    start gpg-waiter unshare --uts sh -c 'hostname "$0" && exec "$@"' B \
        gpg --homedir "$dir/B/files/gnupg" --batch --yes --no-autostart --delete-keys =A1
    expect gpg-waiter "gpg: waiting for lock (held by $$) ..."
    rm "$dir/A/files/gnupg/pubring.kbx.lock"
    finish gpg-waiter || fail "gpg: $(<"$dir/gpg-waiter.out")"
}
install -d -m 700 "$work/gnupg"
for host in $here; do
    for key in 1 2; do
        # shellcheck disable=SC2094
        gpg --homedir "$work/gnupg" --batch --passphrase '' --quick-gen-key "$host$key" ed25519 sign never >"$dir/gpg.log" 2>&1 </dev/null
        gpg --homedir "$work/gnupg" --batch --export-options export-minimal --export "=$host$key" >"$work/$host$key.pub"
    done
done
gpgconf --homedir "$work/gnupg" --kill all
check gpg_imports gpg
check gpg_waits gpg

# useradd: a folder etc with so few users that each of its files has at most 4 KiB.
make_etc() {
    local host
    for host in $here; do
        mkdir -p "$dir/$host/files/etc" "$work/prefix-$host"
        ln -sfn "$dir/$host/files/etc" "$work/prefix-$host/etc"
        [ -e "$dir/$host/files/etc/passwd" ] || echo 'root:x:0:0:root:/root:/bin/sh' >"$dir/$host/files/etc/passwd"
        [ -e "$dir/$host/files/etc/group" ] || echo 'root:x:0:' >"$dir/$host/files/etc/group"
    done
}

# useradd_adds PROGRAM: each host adds users of its own, at the same time; all have all of them then.
useradd_adds() {
    local host user names=()
    make_etc
    for user in 1 2 3; do
        for host in $here; do
            names+=("useradd-$host$user")
            # shellcheck disable=SC2016
            start "${names[-1]}" sh -c 'until LD_PRELOAD=$1 useradd -P "$2" -N -M "$3"; do sleep 0.1; done' - \
                "$work/hasty.so" "$work/prefix-$host" "user-${host,,}$user"
        done
    done
    for user in "${names[@]}"; do
        finish "$user" || fail "$user: $(<"$dir/$user.out")"
    done
    for host in $here; do
        expect_equal "useradd: users on host $host" 9 "$(grep -c '^user-' "$dir/$host/files/etc/passwd")"
    done
}

# useradd_refused PROGRAM: by the lock of a process that lives.
useradd_refused() {
    make_etc
    printf '%d' $$ >"$dir/A/files/etc/passwd.$$"
    ln "$dir/A/files/etc/passwd.$$" "$dir/A/files/etc/passwd.lock"
    refused env LD_PRELOAD="$work/hasty.so" useradd -P "$work/prefix-B" -N -M user-refused >"$dir/useradd.out" 2>&1
    grep -q 'cannot lock .*etc/passwd' "$dir/useradd.out" || fail "useradd: $(<"$dir/useradd.out")"
    rm "$dir/A/files/etc/passwd.$$" "$dir/A/files/etc/passwd.lock"
    env LD_PRELOAD="$work/hasty.so" useradd -P "$work/prefix-B" -N -M user-added
}
check useradd_adds useradd
check useradd_refused useradd

# What its lock has is the number of a process alone: that of another host, which nobody has here, is taken away.
useradd_steals() {
    make_etc
    sh -c 'printf %d $$ >"$1"' - "$dir/A/files/etc/passwd.lock"
    env LD_PRELOAD="$work/hasty.so" useradd -P "$work/prefix-B" -N -M user-stolen
}
[ "$programs_on" = apart ] || check useradd_steals useradd
