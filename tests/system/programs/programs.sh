# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what functions.sh sets, and reads
# Programs that make lock files, on several hosts. Sourced after functions.sh.
#
# $dir/HOST/files is the folder for their locks, one and the same on all hosts. From the environment, to try the tests themselves:
# PROGRAMS_ON=shared, it is a tmpfs under several paths, without dlockfs; PROGRAMS_ON=apart, it is another tmpfs on each host, so that
# nothing excludes anything: there each check has to fail. PROGRAMS="NAME...": only these programs. PROGRAMS_STORE=etcd.

programs_on=${PROGRAMS_ON:-mounts}
work=$dir/work # what the programs work on, shared by all hosts
here="A B C"
unset GNUPGHOME GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE CVSROOT
export HOME=$work GIT_CONFIG_NOSYSTEM=1

# start_store: the servers, if there are to be any.
start_store() {
    [ "$programs_on" != mounts ] || "start_${PROGRAMS_STORE:-zookeeper}"
}

# start_hosts HOST...: $dir/HOST/files on each, with `sections` more of the configuration, the `directories` of the mount, and the
# arguments of start_dlockfs in arguments_of[HOST].
sections=""
directories=files
declare -A arguments_of
start_hosts() {
    local host
    here=$*
    mkdir -p "$work"
    for host; do
        case $programs_on in
            mounts)
                printf '%s\n' '[mount]' "directories = $directories" '[locks "files"]' 'style = file' "$sections" >"$dir/$host.ini"
                # shellcheck disable=SC2086
                start_dlockfs "$host" --config "$dir/$host.ini" ${arguments_of[$host]:-}
                ;;
            shared)
                mkdir -p "$dir/$host" "$dir/shared"
                is_tmpfs "$dir/shared" || mount -t tmpfs none "$dir/shared"
                # shellcheck disable=SC2086
                (cd "$dir/shared" && mkdir -p $directories)
                mount --bind "$dir/shared" "$dir/$host"
                ;;
            apart)
                mkdir -p "$dir/$host"
                mount -t tmpfs none "$dir/$host"
                # shellcheck disable=SC2086
                (cd "$dir/$host" && mkdir -p $directories)
                ;;
        esac
    done
}

is_tmpfs() {
    awk -v "point=$1" '$2 == point && $3 == "tmpfs" { found = 1 } END { exit !found }' /proc/self/mounts
}

# program VERB PROGRAM HOST ARGUMENT...: sets `command` to what runs it, in the directory `folder`. Each host has its own name, which many of them write into their
# locks.
folder=files
program() {
    local arguments=("$1" "$2" "$dir/$3/$folder" "$work" "$3" "${@:4}")
    # shellcheck disable=SC2016
    command=(unshare --uts sh -c 'hostname "$0" && exec "$@"' "$3")
    case $2 in
        emacs) command+=(emacs --batch -Q -l "$tests/system/programs/program_emacs.el" "${arguments[@]}") ;;
        filelock | mailbox) command+=("$python" "$tests/system/programs/program_python.py" "${arguments[@]}") ;;
        nfslock) command+=(perl "$tests/system/programs/program_nfslock.pl" "${arguments[@]}") ;;
        *) command+=(bash "$tests/system/programs/program.sh" "${arguments[@]}") ;;
    esac
}

# attempt PROGRAM HOST: ends as the verb "try" does; 2 is an error.
attempt() {
    local command status=0
    program try "$1" "$2"
    timeout "$deadline" "${command[@]}" >"$dir/try-$1.out" 2>&1 || status=$?
    return "$status"
}

has_lock() { # PROGRAM HOST: somebody, as that host sees it
    local status=0
    attempt "$@" || status=$?
    [ "$status" -lt 2 ] || fail "$1 on host $2: status $status: $(<"$dir/try-$1.out")"
    [ "$status" -eq 1 ]
}

free_lock() {
    ! has_lock "$@"
}

# hold_program NAME PROGRAM HOST: it has the lock, until `go NAME-go`.
hold_program() {
    local command
    rm -f "$dir/$1-go"
    program hold "$2" "$3" "$dir/$1-go"
    start "$1" "${command[@]}"
    expect "$1" held
}

# counts PROGRAM PROCESSES TIMES: so many processes on each host; no increment may be lost.
counts() {
    local command host number names=() begin
    begin=$(now_ms)
    echo 0 >"$dir/counter-$1"
    for ((number = 0; number < $2; number++)); do
        for host in $here; do
            names+=("$1-$host$number")
            program count "$1" "$host" "$dir/counter-$1" "$3"
            start "${names[-1]}" "${command[@]}"
        done
    done
    for name in "${names[@]}"; do
        finish "$name" || fail "$name: $(<"$dir/$name.out")"
    done
    expect_equal "violation: $1: increments" "$((${#names[@]} * $3))" "$(<"$dir/counter-$1")"
    echo "$1: ${#names[@]} processes, $((${#names[@]} * $3)) increments in $(($(now_ms) - begin)) ms"
}

# seen PROGRAM: while a host has the lock, another one finds it taken, and free again afterwards.
seen() {
    local host
    hold_program "$1-holder" "$1" A
    for host in $here; do
        has_lock "$1" "$host" || violation "$1: host A has the lock, host $host finds it free"
    done
    go "$1-holder-go"
    finish "$1-holder" || fail "$1: $(<"$dir/$1-holder.out")"
    expect "$1-holder" released
    for host in $here; do
        free_lock "$1" "$host" || fail "$1: host A has released its lock, host $host finds it taken"
    done
}

# stays PROGRAM NAME...: when the holder is killed its lock stays, as on any file system, until somebody takes these names away. Some
# programs take the lock of a process of their own host that has ended: so it is the others that look.
stays() {
    local host name
    hold_program "$1-killed" "$1" A
    release "$1-killed"
    for host in ${here#A }; do
        has_lock "$1" "$host" || violation "$1: its holder on host A was killed, host $host finds it free"
    done
    for name in "${@:2}"; do
        rm -r "$dir/A/files/$name" || fail "$1: host A cannot remove its lock $name"
        # A host that had made a part of it takes that for its own until it looks, or until the next heartbeat.
        for host in ${here#A }; do
            [ ! -e "$dir/$host/files/$name" ] || fail "$1: $name was removed on host A, host $host finds it"
        done
    done
    free_lock "$1" B || fail "$1: it was removed on host A, host B finds it taken"
}

# check WHAT PROGRAM ARGUMENT...: what is one of the functions above, or of the test's.
check() {
    local status=0 name host
    [ -z "${PROGRAMS:-}" ] || [[ " $PROGRAMS " == *" $2 "* ]] || return 0
    if [ "$programs_on" != apart ]; then
        "$@"
        return
    fi
    (
        exec {stderr}>&2
        "$@"
    ) >"$dir/apart" 2>&1 || status=$?
    [ "$status" -ne 0 ] || fail "$1 $2: passes where nothing excludes anything"
    echo "$1 $2: fails, as it must: $(grep -m 1 'failed: ' "$dir/apart")"
    for name in "$dir/pids/$2-"*; do
        [ ! -e "$name" ] || send_signal "${name##*/}" KILL
        rm -f "$name"
    done
    for host in $here; do
        find "$dir/$host/files" -mindepth 1 -delete
    done
}
