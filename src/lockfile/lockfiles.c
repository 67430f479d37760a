/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls about lock files, and what the store answers. Loop thread only.
 */
#include "lockfile/lockfiles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "lockfile/alteration.h"

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

static void set_limit(const struct lockfiles *lockfiles, struct timers *timers, struct timer *timer,
		      int64_t limit_ms)
{
	if (limit_ms < INT64_MAX - lockfiles->engine->now_ms)
		timers_set(timers, timer, lockfiles->engine->now_ms + limit_ms);
	else
		timers_clear(timers, timer);
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
	if (alteration == NULL)
		alteration = alteration_create(lockfiles, steps, count);
	if (alteration == NULL)
		return -ENOMEM;
	alteration->former = false;
	alteration->asked = true;
	alteration->cookie = cookie;
	set_limit(lockfiles, &lockfiles->alteration_timers, &alteration->timer, limit_ms);
	alteration_mark(alteration);
	/* What can be told at once is told later: the caller does not know of it yet. */
	if (alteration->state == ALTERATION_BARRED || lockfiles->turns_changed)
		lock_retry_in(lockfiles->engine, 0);
	if (alteration->state != ALTERATION_BARRED)
		alteration_begin(alteration);
	return 0;
}

static int ask_for(struct lockfiles *lockfiles, const char *path, bool list, int64_t limit_ms,
		   void *cookie)
{
	struct file_read *read;

	if (!has_files(lockfiles, path))
		return -ENOLCK;
	read = calloc(1, sizeof(*read) + strlen(path) + 1);
	if (read == NULL)
		return -ENOMEM;
	if (timers_reserve(&lockfiles->read_timers, lockfiles->reads_count + 1) < 0) {
		free(read);
		return -ENOMEM;
	}
	read->lockfiles = lockfiles;
	read->cookie = cookie;
	read->list = list;
	strcpy(read->path, path);
	DL_APPEND(lockfiles->reads, read);
	lockfiles->reads_count++;
	set_limit(lockfiles, &lockfiles->read_timers, &read->timer, limit_ms);
	file_read_send(read);
	return 0;
}

int lockfiles_read(struct lockfiles *lockfiles, const char *path, int64_t limit_ms, void *cookie)
{
	return ask_for(lockfiles, path, false, limit_ms, cookie);
}

int lockfiles_list(struct lockfiles *lockfiles, const char *directory, int64_t limit_ms,
		   void *cookie)
{
	return ask_for(lockfiles, directory, true, limit_ms, cookie);
}

/* Limits */

static void free_read(struct file_read *read)
{
	struct lockfiles *lockfiles = read->lockfiles;

	file_ask_forget(&read->ask);
	timers_clear(&lockfiles->read_timers, &read->timer);
	DL_DELETE(lockfiles->reads, read);
	lockfiles->reads_count--;
	free(read);
}

/* Answers a read that has failed. */
static void fail_read(struct file_read *read, int error)
{
	struct lockfiles *lockfiles = read->lockfiles;
	void *cookie = read->cookie;
	bool list = read->list;

	free_read(read);
	if (list)
		news_listed(lockfiles, cookie, error, NULL, 0);
	else
		news_read(lockfiles, cookie, error, NULL, false);
}

static struct timer *first_due(const struct lockfiles *lockfiles, const struct timers *timers)
{
	struct timer *timer = timers_first(timers);
	return timer != NULL && timer->due_ms <= lockfiles->engine->now_ms ? timer : NULL;
}

static void end_time(void *context)
{
	struct lockfiles *lockfiles = context;
	struct timer *timer;

	while ((timer = first_due(lockfiles, &lockfiles->alteration_timers)) != NULL)
		alteration_undo(
			(struct alteration *)((char *)timer - offsetof(struct alteration, timer)));
	while ((timer = first_due(lockfiles, &lockfiles->read_timers)) != NULL)
		fail_read((struct file_read *)((char *)timer - offsetof(struct file_read, timer)),
			  -ETIMEDOUT);
	if (lockfiles->turns_changed)
		lockfiles_resume(lockfiles);
	lockfiles_grow_up(lockfiles);
}

static int64_t deadline(const void *context)
{
	const struct lockfiles *lockfiles = context;
	const struct timer *alteration = timers_first(&lockfiles->alteration_timers);
	const struct timer *read = timers_first(&lockfiles->read_timers);
	const struct timer *watch = timers_first(&lockfiles->watch_timers);
	int64_t deadline_ms = INT64_MAX;

	if (alteration != NULL)
		deadline_ms = alteration->due_ms;
	if (read != NULL && read->due_ms < deadline_ms)
		deadline_ms = read->due_ms;
	if (watch != NULL && watch->due_ms < deadline_ms)
		deadline_ms = watch->due_ms;
	return deadline_ms;
}

static void destroy(void *context)
{
	struct lockfiles *lockfiles = context;
	struct own *file, *next;

	while (lockfiles->alterations != NULL)
		alteration_free(lockfiles->alterations);
	while (lockfiles->reads != NULL)
		free_read(lockfiles->reads);
	HASH_ITER (hh, lockfiles->files, file, next) {
		own_free(file);
	}
	while (lockfiles->asks != NULL)
		file_ask_free(lockfiles->asks);
	timers_finish(&lockfiles->alteration_timers);
	timers_finish(&lockfiles->read_timers);
	timers_finish(&lockfiles->watch_timers);
	free(lockfiles);
}

/* What this host has */

bool lockfiles_have(const struct lockfiles *lockfiles, const char *path)
{
	return own_find(lockfiles, path) != NULL && !own_is_busy(lockfiles, path) &&
	       lockfiles->engine->now_ms < engine_lease_end(lockfiles->engine);
}

bool lockfiles_know(const struct lockfiles *lockfiles, const char *path)
{
	return lockfiles_have(lockfiles, path) && own_is_known(own_find(lockfiles, path));
}

size_t lockfiles_count(const struct lockfiles *lockfiles)
{
	return HASH_COUNT(lockfiles->files);
}

/* Answers of the store */

/* Whether nobody wants to know. */
static bool is_forgotten(struct file_ask *ask)
{
	if (ask->asker != NULL)
		return false;
	file_ask_free(ask);
	return true;
}

/* The books are in order again: what can go on does, and callers are told. */
static void finish(struct lockfiles *lockfiles)
{
	if (lockfiles->turns_changed)
		lockfiles_resume(lockfiles);
	settle_changed(lockfiles->engine);
}

static void on_changed(struct store_change *change, int error)
{
	struct file_ask *ask = (struct file_ask *)change;
	struct lockfiles *lockfiles = ask->lockfiles;
	struct alteration *alteration = ask->alteration;
	enum file_ask_kind kind = ask->kind;

	if (error != -ECONNRESET && ask->asker != NULL)
		session_acknowledged(lockfiles->engine, ask->sent_ms);
	if (is_forgotten(ask))
		return;
	alteration->ask = NULL;
	file_ask_free(ask);
	if (kind == ASK_SYNC)
		alteration_synced(alteration, error);
	else
		alteration_answered(alteration, error);
	finish(lockfiles);
}

/* Whether what was read is the file of this host. */
static bool is_file(const struct own *file, int error, const struct store_claim *claim)
{
	return error == 0 && outbox_is_of_session(file->lockfiles->engine, claim) &&
	       own_has_line(claim->data, claim->data_bytes, file->line);
}

/* What was read at the path of a file of this host, and asked for when that was in the books
 * already. Takes the file, if it is gone. */
static void note_found(struct own *file, int error, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = file->lockfiles;

	if ((error != 0 && error != -ENOENT) || own_is_in_flux(lockfiles, file->path))
		return; /* the next one tells more */
	if (is_file(file, error, claim)) {
		own_note_seen(file);
		return;
	}
	own_end(file, LOCKFILE_TAKEN);
	session_hurry_beat(lockfiles->engine); /* there may be more of them */
}

/* Who alters it may wait for that. */
static void note_looked(struct own *file, int error, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = file->lockfiles;
	bool waits = own_is_busy(lockfiles, file->path);

	note_found(file, error, claim);
	if (error == 0 || error == -ENOENT)
		lockfiles->turns_changed |= waits;
	else if (waits)
		lock_retry_in(lockfiles->engine,
			      error == -ECONNRESET ? RETRY_SOON_MS : RETRY_LATER_MS);
}

/* Whoever asked may act upon it at once: what is not there can be made. So the file is gone before
 * that is told. */
static void answer_read(struct file_read *read, uint64_t serial, int error,
			const struct store_claim *claim)
{
	struct lockfiles *lockfiles = read->lockfiles;
	struct own *file = own_find(lockfiles, read->path);
	void *cookie = read->cookie;

	if (error == -ECONNRESET) {
		lock_retry_in(lockfiles->engine, RETRY_SOON_MS);
		return;
	}
	bool ours = file != NULL && is_file(file, error, claim);
	if (file != NULL && file->serial <= serial)
		note_found(file, error, claim);
	free_read(read);
	news_read(lockfiles, cookie, error, error == 0 ? claim : NULL, ours);
}

static void on_read(struct store_read *store_read, int error, const struct store_claim *claim)
{
	struct file_ask *ask = (struct file_ask *)store_read;
	struct lockfiles *lockfiles = ask->lockfiles;
	void *asker = ask->asker;
	enum file_ask_kind kind = ask->kind;
	uint64_t serial = ask->serial;

	if (is_forgotten(ask))
		return;
	if (kind == ASK_LOOK)
		ask->alteration->ask = NULL;
	else if (kind == ASK_MISSED)
		ask->file->ask = NULL;
	else
		ask->reader->ask = NULL;
	file_ask_free(ask);
	if (kind == ASK_LOOK)
		alteration_looked(asker, error, claim);
	else if (kind == ASK_MISSED)
		note_looked(asker, error, claim);
	else
		answer_read(asker, serial, error, claim);
	finish(lockfiles);
}

static void on_listed(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct file_ask *ask = (struct file_ask *)files;
	struct lockfiles *lockfiles = ask->lockfiles;
	struct file_read *read = ask->reader;

	if (is_forgotten(ask))
		return;
	read->ask = NULL;
	file_ask_free(ask);
	if (error == -ECONNRESET) {
		lock_retry_in(lockfiles->engine, RETRY_SOON_MS);
		return;
	}
	void *cookie = read->cookie;
	free_read(read);
	news_listed(lockfiles, cookie, error, names, count);
	finish(lockfiles);
}

static const struct file_answers answers = {
	.changed = on_changed,
	.read = on_read,
	.listed = on_listed,
};

/* By the tag of its watch. */
static struct file_ask *ask_watching(struct watcher *watcher)
{
	return (struct file_ask *)((char *)watcher - offsetof(struct file_ask, errand.watcher));
}

static void watch_read(void *context, struct watcher *watcher, const char *text)
{
	own_watch_read(ask_watching(watcher), text);
	finish(context);
}

static void watch_ended(void *context, struct watcher *watcher, int error)
{
	own_watch_ended(ask_watching(watcher), error);
	finish(context);
}

static const struct tenant_kind kind = {
	.lose_session = lockfiles_lose_session,
	.resume = lockfiles_resume,
	.end_time = end_time,
	.deadline = deadline,
	.watch_read = watch_read,
	.watch_ended = watch_ended,
	.show_names = lockfiles_show,
	.missed = lockfiles_missed,
	.visit = lockfiles_visit,
	.has_word = lockfiles_have_word,
	.restore = lockfiles_restore,
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
