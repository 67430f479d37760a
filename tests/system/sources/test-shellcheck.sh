#!/bin/bash
# The shell scripts of the distribution are clean for shellcheck. That of a test takes ten times as long with functions.sh, which
# is checked by itself: in its place stand its variables alone.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v shellcheck
cd "$source_dir"
cp -a --parents .shellcheckrc .ci etc/*.sh etc/debian/*.sh etc/debian/tests etc/completion etc/arch tests/*.sh tests/{bench,lib}/*.sh tests/system/{*,*/*}/*.sh "$dir"
cd "$dir"
shellcheck tests/{functions,run}.sh
# In two commands: what each further one costs, it costs in every file.
names=$(grep -hoP '(?<![\w${])[a-z]\w*(?=\+?=)|(?<=exec \{)\w+' "$tests"/{functions,etcd,processes,redis}.sh | sort -u | paste -sd' ')
printf '%s\n' 'set -Eeuo pipefail' "read -r $names" "export $names" >tests/functions.sh
printf '%s\0' .ci/run etc/*.sh etc/debian/*.sh etc/debian/tests/quickstart etc/completion/dlock* etc/arch/* tests/{etcd,list,packages,processes,redis}.sh \
    tests/{bench,lib}/*.sh tests/system/{*,*/*}/*.sh |
    xargs -0 -P 2 -n 4 shellcheck
