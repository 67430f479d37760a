/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that read a file, or list the files of a directory. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_READING_H
#define DLOCKFS_LOCKFILE_READING_H

#include "lockfile/ask.h"

struct reading {
	struct lockfiles *lockfiles;
	struct reading *prev, *next; /* in lockfiles->readings */
	struct timer timer;	     /* the caller's limit */
	void *cookie;
	bool list;
	struct ask *ask; /* NULL: to be sent */
	char path[];
};

/* Begins a call of lockfiles_read() or lockfiles_list(). Returns 0 or -ENOMEM. */
int reading_begin(struct lockfiles *lockfiles, const char *path, bool list, int64_t limit_ms,
		  void *cookie);

void reading_free(struct reading *reading);

/* Sends the question, if that is due and possible. */
void reading_send(struct reading *reading);

/* The store has answered the question, which is freed. */
void reading_answered(struct ask *ask, int error, const struct store_claim *claim);
void reading_listed(struct ask *ask, int error, const char *const *names, size_t count);

/* The reading's limit has passed. Frees the reading. */
void reading_end_time(struct timer *timer);

#endif
