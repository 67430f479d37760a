#!/bin/bash
# Servers with localSessionsEnabled and without localSessionsUpgradingEnabled keep no claim: each call fails with ENOLCK, and the log
# names the settings.
# shellcheck source=../../../functions.sh
. "$(dirname "$0")/../../../functions.sh"

zookeeper_configuration="localSessionsEnabled=true
localSessionsUpgradingEnabled=false"
start_ensemble 3
start_dlockfs A
expect_status 71 flock "$dir/A/job" true 2>"$dir/flock.err"
grep -qi 'no locks available' "$dir/flock.err"
grep 'cannot create .*/job/.*localSessionsUpgradingEnabled=true' "$dir/A.log" || fail "the log does not say why"
