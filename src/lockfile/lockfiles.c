/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls about lock files, what the store answers, and what becomes of both when the session is
 * lost: see the table in lockfiles.h. Loop thread only.
 */
#include "lockfile/lockfiles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/lock.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "lockfile/alteration.h"
#include "lockfile/ask.h"
#include "lockfile/reading.h"
#include "lockfile/restore.h"
#include "lockfile/save.h"
#include "lockfile/turn.h"
#include "lockfile/watch.h"

/* Whether there are such files. If not, the log tells. */
static bool has_files(struct lockfiles *lockfiles, const char *path)
{
	if ((lockfiles->engine->abilities & STORE_HAS_FILES) != 0)
		return true;
	if (log_limit_passes(&lockfiles->engine->refusals, lockfiles->engine->now_ms, "lock files",
			     path, strlen(path), -ENOLCK))
		log_lock_error(path, "its store has not got lock files: refused with ENOLCK");
	return false;
}

/* Whether one transaction takes that. */
static bool fits(const struct store_step *steps, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += STORE_STEP_BYTES + 3 * strlen(steps[i].path) +
			 (steps[i].text != NULL ? strlen(steps[i].text) : 0);
	return bytes <= STORE_STEPS_BYTES_MAX;
}

/* Whether they make a file without removing one: what is there may be renamed. */
static bool is_new(const struct store_step *steps, size_t count)
{
	bool makes = false;

	for (size_t i = 0; i < count; i++) {
		if (steps[i].kind == STEP_REMOVE)
			return false;
		makes = makes || steps[i].kind == STEP_MAKE || steps[i].kind == STEP_TAKE;
	}
	return makes;
}

int lockfiles_alter(struct lockfiles *lockfiles, const struct store_step *steps, size_t count,
		    int64_t limit_ms, void *cookie)
{
	struct alteration *alteration;

	assert(count <= STORE_STEPS_MAX);
	if (!has_files(lockfiles, count > 0 ? steps[0].path : ""))
		return -ENOLCK;
	if (!fits(steps, count))
		return -EMSGSIZE;
	alteration = alteration_find_former(lockfiles, steps, count);
	if (alteration == NULL && lockfiles->engine->grants.draining && is_new(steps, count))
		return -ENOLCK;
	if (alteration == NULL)
		alteration = alteration_create(lockfiles, steps, count);
	if (alteration == NULL)
		return -ENOMEM;
	alteration->former = false;
	alteration->asked = true;
	alteration->cookie = cookie;
	books_set_limit(lockfiles, &alteration->timer, limit_ms);
	lockfile_save_mark(alteration);
	/* What can be told at once is told later: the caller does not know of it yet. */
	if (alteration->state == ALTERATION_BARRED || lockfiles->turns_changed)
		lock_retry_in(lockfiles->engine, 0);
	if (alteration->state != ALTERATION_BARRED)
		alteration_begin(alteration);
	return 0;
}

static int read_or_list(struct lockfiles *lockfiles, const char *path, bool list, int64_t limit_ms,
			void *cookie)
{
	return has_files(lockfiles, path) ? reading_begin(lockfiles, path, list, limit_ms, cookie)
					  : -ENOLCK;
}

int lockfiles_read(struct lockfiles *lockfiles, const char *path, int64_t limit_ms, void *cookie)
{
	return read_or_list(lockfiles, path, false, limit_ms, cookie);
}

int lockfiles_list(struct lockfiles *lockfiles, const char *directory, int64_t limit_ms,
		   void *cookie)
{
	return read_or_list(lockfiles, directory, true, limit_ms, cookie);
}

/* The end of a session, and going on */

/* Such an alteration can be asked for again in another session: nothing that is there may be lost
 * by that. */
static bool only_makes(const struct alteration *alteration)
{
	for (size_t i = 0; i < alteration->count; i++) {
		if (alteration->steps[i].kind != STEP_MAKE)
			return false;
	}
	return alteration->count > 0;
}

static void lose_alteration(struct alteration *alteration)
{
	bool sent = alteration->state != ALTERATION_WANTED;
	bool refused = alteration->state == ALTERATION_BARRED && alteration->error != 0;

	alteration_set_state(alteration, refused ? ALTERATION_BARRED : ALTERATION_WANTED);
	lockfile_save_mark(alteration);
	if (alteration->undoing) {
		alteration_free(alteration); /* what it made ends with the session */
	} else if (refused) {
		alteration_decide(alteration);
	} else if (only_makes(alteration)) {
		alteration->resent |= sent;
		alteration->refused = false;
	} else {
		alteration_conclude(alteration, -EIO);
	}
}

static void lose_session(void *context)
{
	struct lockfiles *lockfiles = context;
	struct alteration *alteration, *next_alteration;
	struct own *file, *next_file;
	struct reading *reading;
	struct ask *ask, *next;

	DL_FOREACH (lockfiles->readings, reading) {
		ask_forget(&reading->ask);
	}
	HASH_ITER (hh, lockfiles->files, file, next_file) {
		own_end(file, LOCKFILE_LOST);
	}
	DL_FOREACH_SAFE (lockfiles->alterations, alteration, next_alteration) {
		lose_alteration(alteration);
	}
	DL_FOREACH_SAFE (lockfiles->asks, ask, next) {
		if (!ask->errand.sent || ask->kind == ASK_WATCH)
			ask_free(ask);
	}
	lockfiles->watches_sent = 0;
}

/* Drops the questions that the store had no memory for. */
static void drop_failed(struct lockfiles *lockfiles)
{
	struct ask *ask, *next;

	DL_FOREACH_SAFE (lockfiles->asks, ask, next) {
		if (!ask->errand.failed)
			continue;
		if (ask->slot != NULL && ask->kind == ASK_ALTER)
			alteration_set_state(ask->asker, ALTERATION_WANTED);
		ask_free(ask);
	}
}

static void resume(void *context)
{
	struct lockfiles *lockfiles = context;
	struct alteration *alteration, *next;
	struct reading *reading;

	drop_failed(lockfiles);
	do {
		lockfiles->turns_changed = false;
		DL_FOREACH_SAFE (lockfiles->alterations, alteration, next) {
			alteration_go_on(alteration);
		}
	} while (lockfiles->turns_changed);
	DL_FOREACH (lockfiles->readings, reading) {
		reading_send(reading);
	}
	watch_send(lockfiles);
}

/* The limit of an alteration has passed. */
static void end_alteration(struct timer *timer)
{
	struct alteration *alteration = TIMER_WHOLE(timer, struct alteration, timer);
	struct lockfiles *lockfiles = alteration->lockfiles;

	alteration_undo(alteration);
	if (lockfiles->turns_changed)
		resume(lockfiles);
}

static void destroy(void *context)
{
	struct lockfiles *lockfiles = context;
	struct own *file, *next;

	while (lockfiles->alterations != NULL)
		alteration_free(lockfiles->alterations);
	while (lockfiles->readings != NULL)
		reading_free(lockfiles->readings);
	HASH_ITER (hh, lockfiles->files, file, next) {
		own_free(file);
	}
	while (lockfiles->asks != NULL)
		ask_free(lockfiles->asks);
	free(lockfiles);
}

/* What this host has */

bool lockfiles_have(const struct lockfiles *lockfiles, const char *path)
{
	return own_find(lockfiles, path) != NULL && !turn_is_busy(lockfiles, path) &&
	       lockfiles->engine->now_ms < engine_lease_end(lockfiles->engine);
}

bool lockfiles_know(const struct lockfiles *lockfiles, const char *path)
{
	return lockfiles_have(lockfiles, path) && watch_knows(own_find(lockfiles, path));
}

size_t lockfiles_count(const struct lockfiles *lockfiles)
{
	return HASH_COUNT(lockfiles->files);
}

/* Answers of the store */

/* Whether nobody wants the answer: then frees the question. */
static bool is_forgotten(struct ask *ask)
{
	if (ask->slot != NULL)
		return false;
	ask_free(ask);
	return true;
}

/* The books are in order again: what can go on does, and callers are told. */
static void finish(struct lockfiles *lockfiles)
{
	if (lockfiles->turns_changed)
		resume(lockfiles);
	settle_changed(lockfiles->engine);
}

static void on_changed(struct store_change *change, int error)
{
	struct ask *ask = (struct ask *)change;
	struct lockfiles *lockfiles = ask->lockfiles;
	struct alteration *alteration = ask->asker;
	enum ask_kind kind = ask->kind;

	if (is_forgotten(ask))
		return;
	if (error != -ECONNRESET)
		session_acknowledged(lockfiles->engine, ask->sent_ms);
	ask_free(ask);
	if (kind == ASK_SYNC)
		alteration_synced(alteration, error);
	else
		alteration_answered(alteration, error);
	finish(lockfiles);
}

static void on_read(struct store_read *read, int error, const struct store_claim *claim)
{
	struct ask *ask = (struct ask *)read;
	struct lockfiles *lockfiles = ask->lockfiles;
	void *asker = ask->asker;
	enum ask_kind kind = ask->kind;

	if (is_forgotten(ask))
		return;
	if (kind == ASK_READ) {
		reading_answered(ask, error, claim);
	} else {
		ask_free(ask);
		if (kind == ASK_LOOK)
			alteration_looked(asker, error, claim);
		else
			watch_looked(asker, error, claim);
	}
	finish(lockfiles);
}

static void on_listed(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct ask *ask = (struct ask *)files;
	struct lockfiles *lockfiles = ask->lockfiles;

	if (is_forgotten(ask))
		return;
	reading_listed(ask, error, names, count);
	finish(lockfiles);
}

static const struct ask_answers answers = {
	.timed_out = end_alteration,
	.changed = on_changed,
	.read = on_read,
	.listed = on_listed,
};

static void on_watch_read(void *context, struct watcher *watcher, const char *text)
{
	watch_shown(STATE_WHOLE(watcher, struct ask, errand.watcher), text);
	finish(context);
}

static void on_watch_ended(void *context, struct watcher *watcher, int error)
{
	watch_ended(STATE_WHOLE(watcher, struct ask, errand.watcher), error);
	finish(context);
}

static const struct tenant_kind kind = {
	.lose_session = lose_session,
	.resume = resume,
	.watch_read = on_watch_read,
	.watch_ended = on_watch_ended,
	.show_names = own_show,
	.missed = own_missed,
	.visit = lockfile_save_visit,
	.has_word = lockfile_restore_has_word,
	.restore = lockfile_restore_line,
	.check_invariants = lockfiles_check_invariants,
	.destroy = destroy,
};

struct lockfiles *lockfiles_create(struct engine *engine, const struct lockfile_events *events,
				   void *context)
{
	struct lockfiles *lockfiles = calloc(1, sizeof(*lockfiles));

	if (lockfiles == NULL)
		return NULL;
	lockfiles->engine = engine;
	lockfiles->events = events;
	lockfiles->context = context;
	lockfiles->answers = &answers;
	engine->tenant = (struct tenant){.kind = &kind, .context = lockfiles};
	return lockfiles;
}
