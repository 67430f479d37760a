#!/bin/bash
# The order of the source holds: no file includes what stands above or beside its layer, and none call or include each other in
# a circle, but for those that layers.py names. And layers.py finds it where it does not hold.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v nm
requires test -e "$build/compile_commands.json"
layers=("$python" "$tests/system/sources/layers.py")

"${layers[@]}" includes "$source_dir" >"$dir/includes" || fail "$(<"$dir/includes")"
"${layers[@]}" modules "$source_dir" >"$dir/modules" || fail "$(<"$dir/modules")"
"${layers[@]}" circles "$source_dir" "$build" >"$dir/circles" || fail "$(<"$dir/circles")"
"${layers[@]}" names "$source_dir" "$build" >"$dir/names" || fail "$(<"$dir/names")"

# The page for developers names what is there: each path, and each function with its parentheses.
page=$source_dir/etc/doc/hacking.md
names() {
    grep -oE "\`$1\`" "$page" | tr -d '`()' | sort -u
}
names '\.?[a-z]+/[a-zA-Z0-9_./-]+' | grep -v '[A-Z]\{3\}' >"$dir/paths"
test -s "$dir/paths"
while read -r path; do
    test -e "$source_dir/$path" || test -e "$build/${path#build/}" || fail "hacking.md: there is no $path"
done <"$dir/paths"
names '[a-z0-9_]+\(\)' >"$dir/functions"
test -s "$dir/functions"
while read -r name; do
    grep -rqE "\b$name\(" "$source_dir"/{src,fs} || fail "hacking.md: there is no $name()"
done <"$dir/functions"

# In a tree of its own, one include of each kind that is refused.
mkdir "$dir/tree"
cp -r --parents "$source_dir"/{src,fs} "$dir/tree"
tree=$dir/tree$source_dir
# not_included FILE INCLUDE WHAT-IS-SAID
not_included() {
    local line
    echo "#include $2" >>"$tree/$1"
    line=$(wc -l <"$tree/$1")
    ! "${layers[@]}" includes "$tree" >"$dir/refused" || fail "$1 may include $2"
    expect_equal "what is said of $2 in $1" "$1:$line: $3" "$(<"$dir/refused")"
    cp "$source_dir/$1" "$tree/$1"
}
not_included src/base/log.c '"engine/engine.h"' "engine/engine.h is above: src/base does not know src/engine"
not_included src/view/view.h '"files/filesystem.h"' "files/filesystem.h is above: src/view does not know fs/files"
not_included fs/files/inode.c '"status/status.h"' "status/status.h is above: fs/files does not know fs/status"
not_included fs/restart/keeping.c '"loop.h"' "loop.h is above: fs/restart does not know fs"
not_included src/stores/local/store.c '"stores/zookeeper/session/connector.h"' \
    "stores/zookeeper/session/connector.h is only for src/stores/zookeeper"
not_included src/stores/local/store.c '"stores/zookeeper/operation.h"' \
    "stores/zookeeper/operation.h is beside: src/stores/local does not know src/stores/zookeeper"
not_included src/stores/zookeeper/session/socket.c '"stores/zookeeper/operation.h"' \
    "stores/zookeeper/operation.h is above: src/stores/zookeeper/session does not know src/stores/zookeeper"
not_included src/stores/etcd/grpc/call.c '"stores/etcd/keys.h"' \
    "stores/etcd/keys.h is above: src/stores/etcd/grpc does not know src/stores/etcd"
not_included src/engine/books/queue.c '"engine/records/record.h"' \
    "engine/records/record.h is above: src/engine/books does not know src/engine/records"
not_included src/engine/records/record.c '"engine/settle.h"' "engine/settle.h is above: src/engine/records does not know src/engine"
not_included src/engine/books/queue.c '"queue.h"' "queue.h is not in src/ or fs/ by this path"
not_included src/engine/books/queue.c '"../view/view.h"' "../view/view.h is not in src/ or fs/ by this path"
not_included src/dlockctl/tree.c '"base/log.h"' "base/log.h is of src/base: src/dlockctl stands apart"
not_included src/dlockctl/tree.c '"dlockctl/commands/waiting.h"' "dlockctl/commands/waiting.h is above: src/dlockctl does not know src/dlockctl/commands"
not_included fs/loop.c '"dlockctl/text.h"' "dlockctl/text.h is of src/dlockctl, which stands apart"
not_included fs/files/shard.c '"stores/zookeeper/store.h"' "what is of one store is only for fs/files/stores.c"
not_included src/engine/engine.c '<fuse_lowlevel.h>' "fuse_lowlevel.h is only for fs"
not_included src/engine/engine.c '<zookeeper/zookeeper.h>' "zookeeper/zookeeper.h is only for src/stores/zookeeper"
echo 'engine->store->ops->nudge(engine->store);' >>"$tree/src/engine/books/queue.c"
echo 'events->on_lost(context, cookie);' >>"$tree/src/engine/books/queue.c"
! "${layers[@]}" includes "$tree" >"$dir/refused" || fail "any file of the engine may call the store, and callers"
line=$(wc -l <"$tree/src/engine/books/queue.c")
expect_equal "what is said of calls from elsewhere" "src/engine/books/queue.c:$((line - 1)): a call of the store is only for \
src/engine/books/outbox.c src/engine/books/queue.c:$line: news for a caller is only for src/engine/books/decisions.c" "$(paste -sd' ' "$dir/refused")"
cp "$source_dir/src/engine/books/queue.c" "$tree/src/engine/books/queue.c"
echo '#include "handles/handle_end.h"' >>"$tree/fs/handles/handle.h"
! "${layers[@]}" includes "$tree" >"$dir/refused" || fail "headers may include each other in a circle"
line=$(wc -l <"$tree/fs/handles/handle.h")
back=fs/handles/handle_end.h:$(grep -n '"handles/handle.h"' "$tree/fs/handles/handle_end.h" | cut -d: -f1)
expect_equal "what is said of headers in a circle" "fs/handles/handle.h:$line: a circle of 2 files: fs/handles/handle.h:$line \
handles/handle_end.h, $back handles/handle.h" "$(<"$dir/refused")"
cp "$source_dir/fs/handles/handle.h" "$tree/fs/handles/handle.h"
echo '#include "files/inode.h"' >>"$tree/fs/files/text.c"
! "${layers[@]}" modules "$tree" >"$dir/refused" || fail "modules may include each other's headers in a circle"
line=$(wc -l <"$tree/fs/files/text.c")
back=fs/files/inode.h:$(grep -n '"files/text.h"' "$tree/fs/files/inode.h" | cut -d: -f1)
expect_equal "what is said of modules in a circle" "$back: a circle of 2 modules: $back files/text.h, fs/files/text.c:$line \
files/inode.h" "$(<"$dir/refused")"
cp "$source_dir/fs/files/text.c" "$tree/fs/files/text.c"
mkdir "$tree/src/new"
cp "$source_dir/src/base/log.c" "$tree/src/new"
! "${layers[@]}" includes "$tree" >"$dir/refused" || fail "any folder may be new"
expect_equal "what is said of a new folder" "src/new/log.c:1: src/new is no layer" "$(<"$dir/refused")"

# Three files that call each other in a circle, and one that calls them.
mkdir -p "$dir/circle/src/base" "$dir/circle/build"
cd "$dir/circle"
for pair in one:two two:three three:one other:one; do
    printf '%s\n' "void ${pair#*:}(void);" "void ${pair%:*}(void);" "void ${pair%:*}(void)" '{' "	${pair#*:}();" '}' \
        >"src/base/${pair%:*}.c"
    cc -c -o "build/${pair%:*}.o" "src/base/${pair%:*}.c"
    printf '{"directory": "%s", "file": "../src/base/%s.c", "output": "%s.o"}\n' "$PWD/build" "${pair%:*}" "${pair%:*}"
done | jq -s . >build/compile_commands.json
! "${layers[@]}" circles "$PWD" "$PWD/build" >"$dir/refused" || fail "files may call each other in a circle"
expect_equal "what is said of the circle" "src/base/one.c:1: a circle of 3 files: src/base/one.c:1 two() of src/base/two.c, \
src/base/two.c:1 three() of src/base/three.c, src/base/three.c:1 one() of src/base/one.c" "$(grep 'a circle of' "$dir/refused")"

# A function that is named by no file, one that another file's header declares, and two as they should be.
mkdir -p "$dir/names-tree/src/engine" "$dir/names-tree/build"
cd "$dir/names-tree"
printf 'void %s(void);\n' one_here go >src/engine/one.h
printf 'void %s(void);\n' one_there >src/engine/two.h
printf 'void %s(void);\n' engine_all >src/engine/engine.h
printf 'void %s(void) {}\n' one_here go one_there engine_all >src/engine/one.c
cc -c -o build/one.o src/engine/one.c
printf '[{"directory": "%s", "file": "../src/engine/one.c", "output": "one.o"}]\n' "$PWD/build" >build/compile_commands.json
! "${layers[@]}" names "$PWD" "$PWD/build" >"$dir/refused" || fail "functions may have any name"
expect_equal "what is said of names" "src/engine/one.c:2: go() is not named by its file
src/engine/one.c:3: one_there() is declared in src/engine/two.h" "$(sort "$dir/refused")"
