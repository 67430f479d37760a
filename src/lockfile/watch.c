/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of this host's lock files. Another host may take one away: the store
 * tells that at once where there is a watch. Most lock files do not live for long, and are not
 * watched: a watch is one more request to the store, once.
 *
 *   young     in lockfiles->watch_timers: it was made a moment ago, or its watch has failed
 *   unwatched in lockfiles->unwatched: until there is a connection, and not too many are sent
 *   asked     file->watch: watch() of the store is called
 *   watched   file->watched: it has shown the file, and nothing else since
 *
 * A watch cannot be undone. That of a file which this host has removed ends by that, and its answer
 * is dropped. Another process sets all watches anew. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/lock.h"
#include "lockfile/alteration.h"

/* How old a file has to be. */
enum { WATCH_AFTER_MS = 100 };

/* For so long a file that was seen is known without a watch: until that is asked for and answered,
 * and so that what a name was looked up for can be done by that look. */
enum { KNOWN_MS = 250 };

/* How many are under way at a time: heartbeats must not wait long behind those of a process that
 * has taken over many files. */
enum { SENT_MAX = 256 };

void own_note_seen(struct own *file)
{
	file->seen_ms = file->lockfiles->engine->now_ms;
}

bool own_is_known(const struct own *file)
{
	return (file->watched && file->lockfiles->engine->session.state == STORE_CONNECTED) ||
	       (file->seen_ms != INT64_MIN &&
		file->lockfiles->engine->now_ms - file->seen_ms < KNOWN_MS);
}

void own_watch_later(struct own *file)
{
	timers_set(&file->lockfiles->watch_timers, &file->timer,
		   file->lockfiles->engine->now_ms + WATCH_AFTER_MS);
}

void own_watch_soon(struct own *file)
{
	timers_set(&file->lockfiles->watch_timers, &file->timer, 0);
}

/* Returns false if there is no memory. */
static bool send_watch(struct own *file)
{
	file->watch = file_ask_path(file->lockfiles, ASK_WATCH, file, file->path);
	return file->watch != NULL;
}

void lockfiles_watch(struct lockfiles *lockfiles)
{
	struct own *file;

	while ((file = lockfiles->unwatched) != NULL &&
	       lockfiles->engine->session.state == STORE_CONNECTED &&
	       lockfiles->watches_sent < SENT_MAX) {
		DL_DELETE(lockfiles->unwatched, file);
		file->is_unwatched = false;
		if (send_watch(file))
			lockfiles->watches_sent++;
		else
			own_watch_later(file);
	}
}

void lockfiles_grow_up(struct lockfiles *lockfiles)
{
	struct timer *timer;

	while ((timer = timers_first(&lockfiles->watch_timers)) != NULL &&
	       timer->due_ms <= lockfiles->engine->now_ms) {
		struct own *file = (struct own *)((char *)timer - offsetof(struct own, timer));
		timers_clear(&lockfiles->watch_timers, timer);
		DL_APPEND(lockfiles->unwatched, file);
		file->is_unwatched = true;
	}
	lockfiles_watch(lockfiles);
}

/* The first answer to it has come. */
static void note_answered(struct file_ask *ask)
{
	struct lockfiles *lockfiles = ask->lockfiles;

	if (ask->answered)
		return;
	ask->answered = true;
	lockfiles->watches_sent--;
	lockfiles_watch(lockfiles);
}

/* It is not there. One that is about to be altered may be gone by that: then it is looked for
 * later. Takes the file, or not. */
static void note_gone(struct own *file)
{
	if (!own_is_in_flux(file->lockfiles, file->path)) {
		own_end(file, LOCKFILE_TAKEN);
		return;
	}
	file->seen_ms = INT64_MIN;
	if (file->watch == NULL)
		own_watch_later(file);
}

void own_watch_read(struct file_ask *ask, const char *text)
{
	struct own *file = ask->file;

	if (text != NULL)
		note_answered(ask);
	if (file == NULL)
		return;
	file->watched = text != NULL && own_has_line(text, strlen(text), file->line);
	if (text != NULL && !file->watched)
		note_gone(file);
}

void own_watch_ended(struct file_ask *ask, int error)
{
	struct own *file = ask->file;

	note_answered(ask);
	file_ask_free(ask);
	if (file == NULL)
		return;
	file->watch = NULL;
	file->watched = false;
	if (error == 0 || error == -ENXIO)
		note_gone(file);
	else
		own_watch_later(file);
}
