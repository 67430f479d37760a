# shellcheck shell=bash
# Processes and mounts that belong to one folder: started, found again and ended by their id.
# Sourced by functions.sh, run.sh and bench/run.sh.
#
# A process that is started here leads a session of its own, so that it and its children can be ended
# together. DIR/pids/NAME holds its id and its start time: an id alone may be recycled.

# process_find_start PID: sets the variable process_start to the start time of a living process, in clock ticks since boot;
# fails, and sets it to nothing, if there is none. Starts no process itself: tests ask all the time.
process_find_start() {
    local stat=
    process_start=
    { read -r -d '' stat <"/proc/$1/stat" || true; } 2>/dev/null
    [ -n "$stat" ] || return 1
    stat=${stat##*) }
    [ "${stat%% *}" != Z ] || return 1
    # shellcheck disable=SC2086
    set -- $stat
    process_start=${20}
}

# process_record DIR NAME PID: remembers a process that was just started.
process_record() {
    local process_start
    mkdir -p "$1/pids"
    process_find_start "$3" || true
    echo "$3 $process_start" >"$1/pids/$2"
}

# process_alive DIR NAME: whether the process that was recorded still runs.
process_alive() {
    local pid="" started="" process_start
    [ -e "$1/pids/$2" ] || return 1
    read -r pid started <"$1/pids/$2"
    [ -n "$started" ] && process_find_start "$pid" && [ "$process_start" = "$started" ]
}

# process_signal DIR NAME SIGNAL: to the process and its children. The number of a process group is not
# used again while a member of it lives, so it is enough that the leader, if there is one, is the recorded one.
process_signal() {
    local pid="" started="" process_start
    [ -e "$1/pids/$2" ] || return 0
    read -r pid started <"$1/pids/$2"
    process_find_start "$pid" || true
    if [ -n "$started" ] && [ -n "$process_start" ] && [ "$process_start" != "$started" ]; then
        return 0
    fi
    # Right after the start it may not lead its group yet.
    kill "-$3" -- "-$pid" 2>/dev/null || kill "-$3" "$pid" 2>/dev/null || true
}

# processes_end DIR: ends everything that was recorded there, at once.
processes_end() {
    local file
    for file in "$1"/pids/*; do
        [ -e "$file" ] || continue
        process_signal "$1" "${file##*/}" KILL
        rm -f "$file"
    done
}

# mounts_below DIR: the mountpoints below a folder, innermost first.
mounts_below() {
    local mountpoint
    while read -r _ mountpoint _; do
        printf -v mountpoint '%b' "${mountpoint//\\/\\0}"
        case $mountpoint in "$1"/*) printf '%s\n' "$mountpoint" ;; esac
    done </proc/self/mounts | tac
}

# mounts_end DIR: takes all mounts below a folder away.
mounts_end() {
    local mountpoint
    mounts_below "$1" | while read -r mountpoint; do
        umount -l "$mountpoint" || true
    done
}

# folder_remove DIR: removes a test's folder, but never through a mount.
folder_remove() {
    if [ -n "$(mounts_below "$1")" ]; then
        echo "$1 is kept: something is still mounted below it" >&2
        return 1
    fi
    # What a daemon has mounted upon.
    find "$1" -xdev -type d -exec chattr -f -i {} + || true
    rm -rf --one-file-system -- "$1"
}
