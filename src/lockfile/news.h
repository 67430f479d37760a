/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers are told of lock files: in the order of what was noted, as decisions_add_news() has
 * it; of what was read, at once, behind that. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_NEWS_H
#define DLOCKFS_LOCKFILE_NEWS_H

#include "lockfile/own.h"

/* The events of struct lockfile_events. news_gone() takes the file. */
void news_altered(struct lockfiles *lockfiles, void *cookie, int error);
void news_gone(struct own *file, enum lockfile_end why);
void news_read(struct lockfiles *lockfiles, void *cookie, int error,
	       const struct store_claim *claim, bool ours);
void news_listed(struct lockfiles *lockfiles, void *cookie, int error, const char *const *names,
		 size_t count);

#endif
