#!/bin/bash
# What etc/doc/requirements.md says: who builds without a library is told which, and the sources are not glibc's, nor those of the
# latest kernel headers, alone.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v musl-gcc

mkdir "$dir/none" "$dir/headers"
refused env PKG_CONFIG_LIBDIR="$dir/none" CC=musl-gcc meson setup -Detcd=enabled -Dredis=enabled "$dir/build" "$source_dir" >"$dir/setup.out" 2>&1
missing=$(sed -n 's/.*ERROR: .*not found: //p' "$dir/setup.out")
for library in "libfuse 3.14 or later" inih xxHash jansson ncurses "the C library of ZooKeeper 3.7 or later" uthash \
    "nghttp2 1.50 or later" "protobuf-c 1.3 or later" "c-ares 1.16 or later" "hiredis 0.14 or later"; do
    [[ $missing == *"$library ("* ]] || fail "$library is not named: $missing"
done
[[ $missing == *"; see etc/doc/requirements.md" ]] || fail "$missing"

# The other libraries' headers, and the kernel's before Linux 6.2, for a C library that has none of its own.
triplet=$(gcc -print-multiarch)
for header in fuse3 uthash.h utlist.h ini.h zookeeper jansson.h jansson_config.h curses.h ncurses_dll.h unctrl.h xxhash.h nghttp2 protobuf-c openssl hiredis \
    microhttpd.h ares.h ares_build.h ares_rules.h ares_version.h asm-generic asm; do
    for folder in "/usr/include/$triplet" /usr/include; do
        [ ! -e "$folder/$header" ] || ln -sfn "$folder/$header" "$dir/headers"
    done
done
# OpenSSL's are in both folders.
mkdir "$dir/configured"
ln -s "/usr/include/$triplet/openssl" "$dir/configured"
mkdir "$dir/headers/linux"
ln -s /usr/include/linux/* "$dir/headers/linux"
rm "$dir/headers/linux/fuse.h"
awk '/FUSE_EXPIRE_ONLY/ { next }
    /^struct fuse_notify_inval_entry_out/ { inside = 1 }
    inside { sub(/flags/, "padding") }
    /^}/ { inside = 0 }
    { print }' /usr/include/linux/fuse.h >"$dir/headers/linux/fuse.h"
! grep -q FUSE_EXPIRE_ONLY "$dir/headers/linux/fuse.h" || fail "not an old header"
cd "$source_dir"
mkdir "$dir/generated"
protoc-c --proto_path=src "--c_out=$dir/generated" stores/etcd/etcd.proto
find src fs -name '*.c' -print0 | xargs -0 -P 2 -n 20 musl-gcc -std=gnu11 -fsyntax-only -Wall -Werror -D_GNU_SOURCE -DTHREADED \
    -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=314 '-DDLOCKFS_VERSION=""' '-DDLOCKFS_SYSCONFDIR=""' '-DDLOCKFS_LIBEXECDIR=""' -Isrc -Ifs "-I$dir/generated" \
    -isystem "$dir/headers" -isystem "$dir/configured" -isystem "$dir/headers/fuse3" >"$dir/musl.out" 2>&1 || fail "$(grep -m 3 error "$dir/musl.out")"
