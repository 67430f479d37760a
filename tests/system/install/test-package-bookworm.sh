#!/bin/bash
# The Debian package on Debian 12: see package.sh.
release=bookworm
# shellcheck source=package.sh
. "$(dirname "$0")/package.sh"
