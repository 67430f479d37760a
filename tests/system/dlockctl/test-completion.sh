#!/bin/bash
# The completions for zsh and fish load without an error, and offer each command, option and key that --help prints. (That for bash:
# test-manual.sh.)
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires command -v zsh
requires command -v fish
mkdir "$dir/bin"
ln -s "$dlockfs" "$dlockctl" "$dir/bin"
export PATH=$dir/bin:$PATH HOME=$dir
folder=$source_dir/etc/completion

# What the functions of zsh's completion system would be told, one word a line. zsh_offers WORD...: for the last one.
cat >"$dir/offers.zsh" <<'END'
emulate -R zsh
setopt errexit
fpath=("$1" $fpath)
autoload -Uz compinit
compinit -u -d "$HOME/completions" # read again by the next one: without, each takes half a second
function _describe {
    [[ $1 != -o ]] || shift
    print -rl -- ${(M)${${(P)2}%%:*}:#$words[CURRENT]*}
}
function compadd {
    while [[ $1 == -[aS] ]]; do
        [[ $1 != -a ]] || { print -rl -- ${(P)2}; return }
        shift 2
    done
    print -rl -- $@
}
function compset { }
function _normal { print -r -- "normal $CURRENT: $words" }
function _directories { print directories }
function _files { print files }
function _default { }
words=("${@:2}")
CURRENT=$#words
[[ $_comps[$words[1]] == _$words[1] ]]
"_$words[1]"
END
zsh_offers() {
    zsh -f "$dir/offers.zsh" "$folder/zsh" "$@" 2>>"$dir/zsh.err"
}

fish_offers() {
    local line
    printf -v line '%q ' "${@:1:$#-1}"
    fish --no-config -c 'for file in $argv[1]/*.fish; source $file; end; complete -C $argv[2]' "$folder/fish" "$line${*: -1}" \
        2>>"$dir/fish.err" | cut -f 1
}

# offers SHELL WORDS WORD...: that it offers exactly these words, in any order, for the last WORD.
offers() {
    local shell=$1 wanted=$2
    shift 2
    expect_equal "$shell: $*" "$(sort <<<"$wanted")" "$("${shell}_offers" "$@" | sort)"
}

options_of() {
    "$@" --help | sed -n 's/^ *\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

start_dlockfs A
hold holder "$dir/A/nightly"
expect holder held
commands=$("$dlockctl" --help | sed -n '/^Options/q;s/^  \([a-z][a-z]*\).*/\1/p')
for shell in zsh fish; do
    offers "$shell" "$commands" dlockctl ""
    for command in $commands; do
        offers "$shell" "$(options_of dlockctl "$command")" dlockctl "$command" --
    done
    offers "$shell" "$(options_of dlockctl)" dlockctl --
    offers "$shell" $'auto\nalways\nnever' dlockctl --color ""
    offers "$shell" nightly dlockctl --mount "$dir/A" show ""
    offers "$shell" nightly dlockctl --mount "$dir/A" run -w 3 ""
    for action in --on-lost --on-revoke; do
        "${shell}_offers" dlockctl run "$action" "" | finds -x ignore
    done
    offers "$shell" "$(options_of dlockfs)" dlockfs --
    expect_equal "$shell: keys" "$("$dlockfs" --help | awk '/^  [a-z_]+ =/ && !seen[$1]++ { print $1 }' | sort)" \
        "$("${shell}_offers" dlockfs -o "" | tr -d = | sort)"
done
# Behind the name: as for the command itself.
offers zsh "normal 2: ls --al" dlockctl run -n nightly -- ls --al
offers zsh "normal 1: ls" dlockctl run -w 3 nightly ls
offers fish "$(fish --no-config -c 'complete -C "ls --al"' | cut -f 1)" dlockctl run -n nightly -- ls --al
offers fish "idle=1s,mode=" dlockfs -o idle=1s,mod
for shell in zsh fish; do
    expect_equal "errors of $shell" "" "$(<"$dir/$shell.err")"
done
release holder
