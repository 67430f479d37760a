# shellcheck shell=bash
# shellcheck disable=SC2154 # what functions.sh sets
# A terminal of 80 columns and 24 rows, with a shell in it; sourced after functions.sh.

terminal() {
    TMUX='' tmux -S "$dir/tmux" -f /dev/null "$@"
}

# start_terminal: the prompt of the shell is "$ ".
start_terminal() {
    requires command -v tmux
    terminal new-session -d -x 80 -y 24 "env -u NO_COLOR PS1='$ ' HISTFILE= bash --norc --noprofile"
    cleanup_fn end_terminal
    wait_until "$deadline" shows '\$$'
}

# What is on it at the end is for a test that failed.
end_terminal() {
    screen >"$dir/screen.out" 2>/dev/null
    terminal kill-server 2>/dev/null
}

screen() {
    terminal capture-pane -p
}

# shows PATTERN: whether a line of the screen matches.
shows() {
    screen | finds -E -- "$1"
}

expect_screen() {
    wait_until "${2:-$deadline}" shows "$1"
}

# keys KEY...: as tmux names them.
keys() {
    terminal send-keys "$@"
}

# type_line TEXT
type_line() {
    terminal send-keys -l -- "$1"
    terminal send-keys Enter
}
