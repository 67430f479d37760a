/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether files of this host still stand. Loop thread only.
 */
#include "lockfile/watch.h"

#include <errno.h>
#include <string.h>

#include "engine/books/lock.h"
#include "engine/session.h"
#include "lockfile/turn.h"

/* How old a file has to be. */
enum { WATCH_AFTER_MS = 100 };

/* For so long a file that was seen is known without a watch: until that is asked for and answered,
 * and so that what a name was looked up for can be done by that look. */
enum { KNOWN_MS = 250 };

/* How many are under way at a time: heartbeats must not wait long behind those of a process that
 * has taken over many files. */
enum { SENT_MAX = 256 };

void watch_note_seen(struct own *file)
{
	file->seen_ms = file->lockfiles->engine->now_ms;
}

bool watch_knows(const struct own *file)
{
	return (file->watched && file->lockfiles->engine->session.state == STORE_CONNECTED) ||
	       (file->seen_ms != INT64_MIN &&
		file->lockfiles->engine->now_ms - file->seen_ms < KNOWN_MS);
}

void watch_later(struct own *file)
{
	timers_set(&file->lockfiles->watch_timers, &file->timer,
		   file->lockfiles->engine->now_ms + WATCH_AFTER_MS);
}

void watch_soon(struct own *file)
{
	timers_set(&file->lockfiles->watch_timers, &file->timer, 0);
}

void watch_send(struct lockfiles *lockfiles)
{
	struct own *file;

	while ((file = lockfiles->unwatched) != NULL &&
	       lockfiles->engine->session.state == STORE_CONNECTED &&
	       lockfiles->watches_sent < SENT_MAX) {
		DL_DELETE(lockfiles->unwatched, file);
		file->is_unwatched = false;
		ask_path(lockfiles, ASK_WATCH, file, &file->watch, file->path);
		if (file->watch != NULL)
			lockfiles->watches_sent++;
		else
			watch_later(file);
	}
}

void watch_end_time(struct lockfiles *lockfiles)
{
	struct timer *timer;

	while ((timer = timers_first(&lockfiles->watch_timers)) != NULL &&
	       timer->due_ms <= lockfiles->engine->now_ms) {
		struct own *file = STATE_WHOLE(timer, struct own, timer);
		timers_clear(&lockfiles->watch_timers, timer);
		DL_APPEND(lockfiles->unwatched, file);
		file->is_unwatched = true;
	}
	watch_send(lockfiles);
}

/* The first answer to the watch has come. */
static void note_answered(struct ask *ask)
{
	struct lockfiles *lockfiles = ask->lockfiles;

	if (ask->answered)
		return;
	ask->answered = true;
	lockfiles->watches_sent--;
	watch_send(lockfiles);
}

void watch_found(struct own *file, int error, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = file->lockfiles;

	if ((error != 0 && error != -ENOENT) || turn_is_in_flux(lockfiles, file->path))
		return; /* the next one tells more */
	if (own_is_read(file, error, claim)) {
		watch_note_seen(file);
		return;
	}
	own_end(file, LOCKFILE_TAKEN);
	session_hurry_beat(lockfiles->engine); /* there may be more of them */
}

void watch_looked(struct own *file, int error, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = file->lockfiles;
	bool waits = turn_is_busy(lockfiles, file->path);

	watch_found(file, error, claim);
	if (error == 0 || error == -ENOENT)
		lockfiles->turns_changed |= waits;
	else if (waits)
		lock_retry_in(lockfiles->engine,
			      error == -ECONNRESET ? RETRY_SOON_MS : RETRY_LATER_MS);
}

/* The watch does not show the file. A file that is about to be altered may be gone by that: then it
 * is looked for later. Takes the file, or not. */
static void note_gone(struct own *file)
{
	if (!turn_is_in_flux(file->lockfiles, file->path)) {
		own_end(file, LOCKFILE_TAKEN);
		return;
	}
	file->seen_ms = INT64_MIN;
	if (file->watch == NULL)
		watch_later(file);
}

void watch_shown(struct ask *ask, const char *text)
{
	struct own *file = ask->slot != NULL ? ask->asker : NULL;

	if (text != NULL)
		note_answered(ask);
	if (file == NULL)
		return;
	file->watched = text != NULL && own_has_line(text, strlen(text), file->line);
	if (text != NULL && !file->watched)
		note_gone(file);
}

void watch_ended(struct ask *ask, int error)
{
	struct own *file = ask->slot != NULL ? ask->asker : NULL;

	note_answered(ask);
	ask_free(ask);
	if (file == NULL)
		return;
	file->watched = false;
	if (error == 0 || error == -ENXIO)
		note_gone(file);
	else
		watch_later(file);
}
