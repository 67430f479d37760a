#!/bin/bash
# The shell scripts of the distribution are clean for shellcheck.
# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"

requires command -v shellcheck
cd "$source_dir"
shellcheck .ci/run etc/*.sh tests/*.sh tests/system/*.sh tests/bench/*.sh
