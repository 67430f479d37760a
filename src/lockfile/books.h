/* SPDX-License-Identifier: Apache-2.0
 *
 * The books of lock files (lockfiles.h). For the files of this folder only:
 *
 *   lockfiles.c   calls, the store's answers, the end of a session
 *   reading.c     calls that read a file, or list files
 *   alteration.c  the life of an alteration
 *   watch.c       whether files of this host still stand: what is read of them, and their watches
 *   own.c         files of this host
 *   turn.c        whose turn it is to alter a file
 *   ask.c         questions to the store
 *   save.c        all that as text
 *   restore.c     and read again
 *   news.c        what callers are told
 *   invariants.c  for tests: whether the books contradict themselves
 */
#ifndef DLOCKFS_LOCKFILE_BOOKS_H
#define DLOCKFS_LOCKFILE_BOOKS_H

#include "engine/books/state.h"
#include "lockfile/lockfiles.h"

struct ask_answers;

/* The engine's struct tenant counts the files, and the alterations. */
struct lockfiles {
	struct engine *engine;
	const struct lockfile_events *events;
	void *context;
	const struct ask_answers *answers;
	struct own *files; /* of this host */
	struct own *unwatched;
	size_t watches_sent; /* watches that are not answered yet */
	struct turn *turns;
	struct alteration *alterations; /* those that are not decided */
	bool turns_changed;		/* an alteration that waited for another one may be sent */
	struct reading *readings;
	struct ask *asks; /* the questions under way */
};

/* Sets the timer of a call with that limit, in milliseconds; without a limit, clears it. */
static inline void books_set_limit(const struct lockfiles *lockfiles, struct timer *timer,
				   int64_t limit_ms)
{
	struct engine *engine = lockfiles->engine;

	if (limit_ms < INT64_MAX - engine->now_ms)
		timers_set(&engine->agenda.timers, timer, engine->now_ms + limit_ms);
	else
		timers_clear(&engine->agenda.timers, timer);
	engine->agenda.stirs++;
}

#endif
