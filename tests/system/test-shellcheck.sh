#!/bin/bash
# The shell scripts of the distribution are clean for shellcheck.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

requires command -v shellcheck
cd "$source_dir"
printf '%s\0' .ci/run etc/*.sh etc/debian/*.sh etc/completion/* tests/*.sh tests/system/*.sh tests/bench/*.sh |
    xargs -0 -P 2 -n 4 shellcheck
