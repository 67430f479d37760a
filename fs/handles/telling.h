/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is told of a loss, of what, and in which order. For all that one event takes away, such as
 * the end of a session:
 *
 *   1. each open file is fenced, and its poll(2) woken       telling_lose(), at once
 *   2. each process gets the signal of on_lost, once         telling_conclude(), at the end of the
 *                                                            event
 *   3. the processes are forgotten, and the audit says so,   telling_advance(), later
 *      a few at a time
 *
 * Before the event is over nobody else can be granted what was lost, so 1 and 2 are not put off,
 * and do nothing else; the guard sees that they go on (kernel/lease_board.h). The lines of the log
 * wait for 2 by log_hold() (base/log.h).
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_TELLING_H
#define DLOCKFS_HANDLES_TELLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filesystem;
struct handle;
struct inode;

/* All zero: nobody is to be told. */
struct telling {
	uint64_t *numbers;	      /* of open files that were fenced */
	size_t count, capacity;	      /* of `numbers` */
	size_t signalled;	      /* how many of them were concluded */
	size_t said;		      /* how many of them were forgotten */
	struct telling_maker *makers; /* who has made files that are lost */
	uint64_t event;		      /* the number of this event */
	bool has_files;		      /* open files of files that are lost are to be fenced */
};

/* The open file has lost a lock, and is of no use from now on. */
void telling_lose(struct handle *handle);

/* The lock file is lost: its open files, and those of its links, are fenced, and the process
 * that made it is signalled, by telling_conclude(). */
void telling_lose_file(struct inode *inode);

/* All that the event takes away has been named. */
void telling_conclude(struct filesystem *filesystem);

/* Concludes an event that the engine, for want of memory, has not; and does a part of what is left.
 */
void telling_advance(struct filesystem *filesystem);

/* Whether telling_advance() has something to do. */
bool telling_is_due(const struct filesystem *filesystem);

/* Does all that is left. To be called before the daemon ends. */
void telling_finish(struct filesystem *filesystem);

#endif
