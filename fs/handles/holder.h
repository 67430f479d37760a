/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that hold a lock. They get the signals of [locks] on_lost and on_revoke when they
 * lose the lock, or when somebody asks for it. Where neither key is set, nothing is noted.
 *
 * A process is known by a pidfd, taken while the process waits in the call for the lock: so the
 * signal never reaches another process that has got its number since. It is noted
 * - by flock(2) and exclusive open: as the one that the lock was last granted to through the open
 *   file, until nothing is held by these;
 * - by record locks: for each open file through which the process was granted a range, until the
 *   process (or open file description) holds no range of the lock any more.
 *
 * A signal is sent in the name of the user who has opened the file, and only to a process that
 * still has the file open: a process that has executed a program of another user, or has passed the
 * descriptor on and closed it, gets none.
 *
 * The start time of each holder is noted, too, for a daemon that goes on after this one was killed,
 * and has no pidfds: number and start time together mean one process alone.
 *
 * Nothing here fails: a process that cannot be noted holds the lock all the same, and a message
 * says so. Loop thread only; nothing blocks, and nothing calls the engine, whose callbacks call
 * this.
 */
#ifndef DLOCKFS_HANDLES_HOLDER_H
#define DLOCKFS_HANDLES_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "journal/text.h"

struct handle;
struct signal_round;

/* The lock was granted to the thread by flock or exclusive open. To be called before the answer,
 * while the thread waits and so still has its number. 0: the daemon does not see its pid namespace.
 */
void holder_take_file(struct handle *handle, pid_t thread);

/* A range was granted; `owner` is the kernel's number for the process or open file description that
 * the range belongs to, `process` the caller, 0 if the daemon does not see its pid namespace. To be
 * called before the answer. */
void holder_take_range(struct handle *handle, uint64_t owner, pid_t process);

/* Nothing is held by flock or exclusive open any more. */
void holder_leave_file(struct handle *handle);

/* The owner holds no range of the lock any more, through no open file. */
void holder_leave_ranges(struct handle *handle, uint64_t owner);

/* The open file is closed: closes the pidfds that no other open file needs. */
void holder_leave_all(struct handle *handle);

/* The open file has lost a lock: sends the signal to all that hold through it, as part of the
 * round. Those whom the guard has told by then are left out (kernel/lease_board.h). */
void holder_tell_lost(struct handle *handle, struct signal_round *round);

/* Somebody asks for the lock that is held through the open file: sends the signal of on_revoke to
 * those that hold through it. */
void holder_tell_revoked(struct handle *handle);

/* Writes who holds through the handle. */
void holder_save_all(const struct handle *handle, FILE *out);

/* Lets the pidfds live through execve(2). */
void holder_keep_all(const struct handle *handle);

/* Where the pidfds of restored holders come from. */
enum holder_origin {
	HOLDER_REHEARSED, /* there are none */
	HOLDER_INHERITED, /* from this process, before execve(2) */
	HOLDER_OPENED,	  /* opened anew, if the process is still there; else the line is dropped
			     silently */
};

/* Notes the holder that the present line describes. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int holder_restore(struct handle *handle, struct state_reader *in, enum holder_origin origin);

#endif
