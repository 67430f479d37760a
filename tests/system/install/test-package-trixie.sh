#!/bin/bash
# The Debian package on Debian 13: see package.sh.
release=trixie
# shellcheck source=package.sh
. "$(dirname "$0")/package.sh"
