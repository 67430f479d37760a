# SPDX-License-Identifier: Apache-2.0
# fish completion of dlockfs: options and keys from its --help.

function __dlockfs_words
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    switch $before[-1]
        case --config
            __fish_complete_path $word
        case --store
            printf '%s\n' local: zookeeper:// etcd:// redis:// rediss://
        case -o
            set -l list (string match -r '^.*,' -- $word)
            dlockfs --help 2>/dev/null | awk -v "list=$list" '/^  [a-z_]+ =/ { key = $1; next }
                key { sub(/^ +/, ""); if (!seen[key]++) print list key "=\t" $0; key = "" }'
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
