# SPDX-License-Identifier: Apache-2.0
# fish completion of dlockctl: commands and options from its --help, names of locks from the mount.

function __dlockctl_words
    set -l before (commandline -opc)
    set -l command
    set -l mount
    set -l name
    set -l own
    set -l index 2
    while test $index -le (count $before)
        switch $before[$index]
            case --mount
                set index (math $index + 1)
                test $index -le (count $before); and set mount --mount $before[$index]
            case --color --store --config --count --wait --conflict-exit-code --also --once --every --min-hold --max-hold --on-lost --on-revoke --position --as --for --listen --host --red -w -E
                set index (math $index + 1)
            case '-*'
            case '*'
                if test -z "$command"
                    set command $before[$index]
                else if test -z "$name"
                    set name $before[$index]
                else
                    set own $before[$index..-1]
                    break
                end
        end
        set index (math $index + 1)
    end

    switch $before[-1]
        case --mount
            __fish_complete_directories (commandline -ct)
            return
        case --color
            printf '%s\n' auto always never
            return
        case --on-lost
            printf '%s\n' term kill ignore
            return
        case --on-revoke
            printf '%s\n' term ignore
            return
    end
    if test "$command" = run -a -n "$name"
        complete -C (string join ' ' -- (string escape -- $own) (commandline -ct))
        return
    end
    if string match -q -- '-*' (commandline -ct)
        dlockctl $command --help 2>/dev/null |
            sed -n 's/^ *\(-., \)\{0,1\}\(--[a-z-]*\)\( [A-Z]*\)\{0,1\} *\(.*\)/\2\t\4/p'
        return
    end
    switch "$command"
        case ''
            dlockctl --help 2>/dev/null | sed -n -e '/^Options/q' -e '/^  [a-z]/{N;s/^  \([a-z][a-z]*\).*\n */\1\t/p;}'
        case ls show history run wait revoke break hold give
            timeout 2 dlockctl $mount ls 2>/dev/null | awk '$2 == "held" || $2 == "waiting" { print $1 }'
    end
end

complete -c dlockctl -f -a '(__dlockctl_words)'
