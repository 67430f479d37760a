/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers are told of lock files. Loop thread only.
 */
#include "lockfile/news.h"

#include <stdlib.h>

#include "engine/books/decisions.h"

static void tell_altered(void *context, void *cookie, int error)
{
	const struct lockfiles *lockfiles = context;

	lockfiles->events->on_altered(lockfiles->context, cookie, error);
}

static void tell_gone(void *context, void *subject, int why)
{
	const struct lockfiles *lockfiles = context;
	struct own *file = subject;

	lockfiles->events->on_file_gone(lockfiles->context, file->path, (enum lockfile_end)why);
	free(file);
}

void news_altered(struct lockfiles *lockfiles, void *cookie, int error)
{
	decisions_add_news(lockfiles->engine, tell_altered, cookie, error, false);
}

void news_gone(struct own *file, enum lockfile_end why)
{
	decisions_add_news(file->lockfiles->engine, tell_gone, file, (int)why, true);
}

void news_read(struct lockfiles *lockfiles, void *cookie, int error,
	       const struct store_claim *claim, bool ours)
{
	decisions_tell(lockfiles->engine);
	lockfiles->events->on_file(lockfiles->context, cookie, error, claim, ours);
}

void news_listed(struct lockfiles *lockfiles, void *cookie, int error, const char *const *names,
		 size_t count)
{
	decisions_tell(lockfiles->engine);
	lockfiles->events->on_files(lockfiles->context, cookie, error, names, count);
}
