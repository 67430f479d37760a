# SPDX-License-Identifier: Apache-2.0
# fish completion of dlockfs: options and keys from its --help.

function __dlockfs_words
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    switch $before[-1]
        case --config
            __fish_complete_path $word
        case --store
            printf '%s\n' local: zookeeper://
        case -o
            set -l list (string match -r '^.*,' -- $word)
            dlockfs --help 2>/dev/null | awk -F'\t' -v "list=$list" 'NF > 1 && !seen[$2]++ { print list $2 "=\t" $NF }'
        case '*'
            if string match -q -- '-*' $word
                dlockfs --help 2>/dev/null |
                    sed -n 's/^ *\(-., \)\{0,1\}\(--[a-z-]*\)\( [A-Z]*\)\{0,1\} *\(.*\)/\2\t\4/p'
                printf '%s\t%s\n' -o 'a key of the configuration'
            else
                __fish_complete_directories $word
            end
    end
end

complete -c dlockfs -f -a '(__dlockfs_words)'
