#!/bin/bash
# Programs that make lock files: on three hosts no increment under their lock is lost, each host sees it while another one has it, and
# it stays when its holder is killed.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
# shellcheck source=programs.sh
. "$tests/system/programs/programs.sh"

for program in lockfile-create lockfile dotlockfile mutt_dotlock dash; do
    requires command -v "$program"
done
requires perl -MFile::NFSLock -e 1
requires "$python" -c 'import filelock'

start_store
directories="files kept"
sections=$'[locks "kept"]\nstyle = file\nsteal = no'
start_hosts A B C

# Each with the names of its lock.
for program in mkdir ln bash dash lockfile-create:lockfile-create.lock lockfile dotlockfile mutt_dotlock:mutt.lock \
    nfslock:nfslock.NFSLock mailbox:mailbox.lock filelock; do
    lock=${program#*:}
    program=${program%:*}
    case $program in
        # liblockfile takes a lock for stale that goes between two of its looks at it, and removes the next one: on another host it cannot.
        lockfile-create | dotlockfile)
            folder=kept
            check counts "$program" 1 10
            folder=files
            ;;
        *) check counts "$program" 2 5 ;;
    esac
    check seen "$program"
    check stays "$program" "$lock"
done
