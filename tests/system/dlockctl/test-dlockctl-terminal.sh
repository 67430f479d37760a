#!/bin/bash
# dlockctl run on a terminal: the command has it, Ctrl-C and Ctrl-Z work as with any command, the shell gets the terminal back; and
# -v shows who holds the lock.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=../../lib/terminal.sh
. "$tests/lib/terminal.sh"

start_dlockfs A
start_terminal
type_line "PATH=${dlockctl%/*}:\$PATH; export J=$dir/A/job; clear"

# It reads from the terminal, stops, goes on in the foreground, and is interrupted.
type_line 'dlockctl run $J bash -c "echo ready; while read -r word; do echo read-\$word; done"'
expect_screen '^ready'
type_line one
expect_screen '^read-one'
keys C-z
expect_screen 'Stopped'
expect_status 1 flock -n "$dir/A/job" true # it holds it still
type_line 'echo shell-$((40 + 2))'
expect_screen '^shell-42'
type_line 'clear; fg'
expect_screen '^dlockctl run' # the terminal is no longer the shell's
type_line two
expect_screen '^read-two'
keys C-c
type_line 'echo status-$?'
expect_screen '^status-130'
comes_free "$dir/A/job"

# In the background it stops when it wants to read, and reads once it is in the foreground.
type_line 'clear; dlockctl run $J bash -c "read -r word; echo read-\$word" &'
wait_until "$deadline" eval '! flock -n "$dir/A/job" true'
stopped() {
    type_line jobs
    sleep 0.2
    shows 'Stopped'
}
wait_until "$deadline" stopped
type_line 'clear; fg'
expect_screen '^dlockctl run'
type_line three
expect_screen '^read-three'

# Ctrl-C ends a script, too, not only the command in it; and Ctrl-Z stops it.
cat >"$dir/script" <<'EOF'
for i in 1 2 3; do echo round-$i; dlockctl run $J sleep 1000; done
EOF
type_line "clear; bash $dir/script"
expect_screen '^round-1'
wait_until "$deadline" eval '! flock -n "$dir/A/job" true'
keys C-z
expect_screen 'Stopped'
type_line 'clear; fg'
expect_screen '^bash '
sleep 0.2
keys C-c
type_line 'echo status-$?'
expect_screen '^status-130'
if shows '^round-2'; then
    fail "the script went on"
fi

# In a pipeline the other commands have the terminal.
type_line 'clear; dlockctl run $J seq 3 | { cat; read -r word </dev/tty; echo read-$word; }'
expect_screen '^3'
type_line four
expect_screen '^read-four'

# Stopped by Ctrl-Z in a pipeline: the command stops as well, and goes on.
type_line 'clear; dlockctl run $J bash -c "while sleep 0.1; do echo -n .; done" | cat'
expect_screen '^\.\.\.'
keys C-z
expect_screen 'Stopped'
type_line 'clear; fg'
expect_screen '^dlockctl run'
sleep 0.3
keys C-c
expect_screen '\$$'
comes_free "$dir/A/job"

# -v: a line that is written over.
hold holder "$dir/A/job"
expect holder held
type_line 'clear; dlockctl run -v $J echo locked'
if [ -e "$dir/A/.dlockfs/queues" ]; then
    expect_screen '^dlockctl: job: 2 of 2 in the queue; held by .*:.* flock for [0-9]+s'
fi
release holder
expect_screen '^locked'
expect_screen '^dlockctl: job: locked after'
if shows 'in the queue'; then
    fail "the line is still there"
fi
type_line 'exit'
