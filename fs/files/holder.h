/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that hold a lock, for the signals that [locks] on_lost and on_revoke want them to
 * get when they lose it, or are asked for it. Where neither is wanted, nothing is noted.
 *
 * A process is known by a pidfd, taken while it waits in the call that gets it the lock: so the
 * signal never reaches another process that has its number since. It is noted
 * - by flock(2) and exclusive open: as the one that the lock was last granted to through the open
 *   file, until nothing is held by these;
 * - by record locks: for each open file through which it was granted a range, until the process
 *   (or open file description) holds no range of the lock any more.
 *
 * For a process that goes on after this one was killed, and has no pidfds, the time at which the
 * process started is noted, too: with the number it means that process alone.
 *
 * Nothing here fails: who cannot be noted holds the lock all the same, and a message says so. Loop
 * thread only; nothing blocks, and nothing calls the engine, whose callbacks call this.
 */
#ifndef DLOCKFS_FILES_HOLDER_H
#define DLOCKFS_FILES_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "journal/text.h"

struct handle;

/* Of one path; zero but for the signals when there is nobody. */
struct holders {
	int lost_signal, revoke_signal; /* 0: none */
	struct recipient *recipients;	/* the processes, once each */
	struct holder *ranges;		/* those by record locks */
};

/* The lock was granted to the thread by flock or exclusive open; before the answer, so that the
 * thread waits and its number is its own. 0: the daemon does not see its pid namespace. */
void holder_take_file(struct handle *handle, pid_t thread);

/* A range was granted; `owner` is the number that the kernel has for the process or open file
 * description that the range belongs to, `process` who called. As above otherwise. */
void holder_take_range(struct handle *handle, uint64_t owner, pid_t process);

/* Nothing is held by flock or exclusive open any more. */
void holder_leave_file(struct handle *handle);

/* The owner holds no range of the lock any more, through whichever open files it had them. */
void holder_leave_ranges(struct handle *handle, uint64_t owner);

/* The open file is closed: closes the pidfds that no other one needs. */
void holder_leave_all(struct handle *handle);

/* The open file has lost a lock: sends the signal to all that hold through it, and forgets them.
 * Who has got it already for another open file of the path, in the same loss, gets no second one.
 */
void holder_tell_lost(struct handle *handle);

/* Somebody asks for what is held through the open file: sends the signal for that, in the same way,
 * and forgets nobody. */
void holder_tell_revoked(struct handle *handle);

/* Writes who holds through the handle. */
void holder_save_all(const struct handle *handle, FILE *out);

/* Lets the pidfds live through execve(2). */
void holder_keep_all(const struct handle *handle);

/* Where the pidfds of lines come from. */
enum holder_origin {
	HOLDER_REHEARSED, /* there are none */
	HOLDER_INHERITED, /* from this process, before execve(2) */
	HOLDER_OPENED,	  /* anew, if it is the same process still; else nobody holds, silently */
};

/* Notes the one that the present line says. Returns 0; or -EINVAL, -ENOMEM, with a line in the
 * reader's `why`. */
int holder_restore(struct handle *handle, struct state_reader *in, enum holder_origin origin);

#endif
