/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls about lock files that outlive close, and what the store answers. Loop thread only.
 */
#include "engine/lockfile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/alteration.h"
#include "engine/decisions.h"
#include "engine/lock.h"
#include "engine/outbox.h"
#include "engine/session.h"
#include "engine/settle.h"

/* Whether there are such files. If not, the log tells. */
static bool has_files(struct engine *engine, const char *path)
{
	if (engine->events->files != NULL && (engine->abilities & STORE_HAS_FILES) != 0)
		return true;
	if (log_limit_passes(&engine->refusals, engine->now_ms, "lock files", path, strlen(path),
			     -ENOLCK))
		log_lock_error(path, "its store has not got lock files that outlive close: refused "
				     "with ENOLCK");
	return false;
}

static void set_limit(const struct engine *engine, struct timers *timers, struct timer *timer,
		      int64_t limit_ms)
{
	if (limit_ms < INT64_MAX - engine->now_ms)
		timers_set(timers, timer, engine->now_ms + limit_ms);
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

int engine_alter(struct engine *engine, const struct store_step *steps, size_t count,
		 int64_t limit_ms, void *cookie)
{
	struct alteration *alteration;

	assert(count <= STORE_STEPS_MAX);
	if (!has_files(engine, count > 0 ? steps[0].path : ""))
		return -ENOLCK;
	if (!fits(steps, count))
		return -EMSGSIZE;
	alteration = alteration_find_former(engine, steps, count);
	if (alteration == NULL)
		alteration = alteration_create(engine, steps, count);
	if (alteration == NULL)
		return -ENOMEM;
	alteration->former = false;
	alteration->asked = true;
	alteration->cookie = cookie;
	set_limit(engine, &engine->alteration_timers, &alteration->timer, limit_ms);
	alteration_mark(alteration);
	/* What can be told at once is told later: the caller does not know of it yet. */
	if (alteration->state == ALTERATION_BARRED || engine->turns_changed)
		lock_retry_in(engine, 0);
	if (alteration->state != ALTERATION_BARRED)
		alteration_begin(alteration);
	return 0;
}

static int ask_for(struct engine *engine, const char *path, bool list, int64_t limit_ms,
		   void *cookie)
{
	struct file_read *read;

	if (!has_files(engine, path))
		return -ENOLCK;
	read = calloc(1, sizeof(*read) + strlen(path) + 1);
	if (read == NULL)
		return -ENOMEM;
	if (timers_reserve(&engine->file_read_timers, engine->file_reads_count + 1) < 0) {
		free(read);
		return -ENOMEM;
	}
	read->engine = engine;
	read->cookie = cookie;
	read->list = list;
	strcpy(read->path, path);
	DL_APPEND(engine->file_reads, read);
	engine->file_reads_count++;
	set_limit(engine, &engine->file_read_timers, &read->timer, limit_ms);
	file_read_send(read);
	return 0;
}

int engine_read_file(struct engine *engine, const char *path, int64_t limit_ms, void *cookie)
{
	return ask_for(engine, path, false, limit_ms, cookie);
}

int engine_list_files(struct engine *engine, const char *directory, int64_t limit_ms, void *cookie)
{
	return ask_for(engine, directory, true, limit_ms, cookie);
}

/* Limits */

static void free_read(struct file_read *read)
{
	struct engine *engine = read->engine;

	file_ask_forget(&read->ask);
	timers_clear(&engine->file_read_timers, &read->timer);
	DL_DELETE(engine->file_reads, read);
	engine->file_reads_count--;
	free(read);
}

/* Answers a read that has failed. */
static void fail_read(struct file_read *read, int error)
{
	struct engine *engine = read->engine;
	void *cookie = read->cookie;
	bool list = read->list;

	free_read(read);
	if (list)
		decisions_tell_files(engine, cookie, error, NULL, 0);
	else
		decisions_tell_file(engine, cookie, error, NULL, false);
}

static struct timer *first_due(const struct engine *engine, const struct timers *timers)
{
	struct timer *timer = timers_first(timers);
	return timer != NULL && timer->due_ms <= engine->now_ms ? timer : NULL;
}

void lockfiles_end_time(struct engine *engine)
{
	struct timer *timer;

	while ((timer = first_due(engine, &engine->alteration_timers)) != NULL)
		alteration_undo(
			(struct alteration *)((char *)timer - offsetof(struct alteration, timer)));
	while ((timer = first_due(engine, &engine->file_read_timers)) != NULL)
		fail_read((struct file_read *)((char *)timer - offsetof(struct file_read, timer)),
			  -ETIMEDOUT);
	if (engine->turns_changed)
		lockfiles_resume(engine);
	lockfiles_grow_up(engine);
}

int64_t lockfiles_deadline(const struct engine *engine)
{
	const struct timer *alteration = timers_first(&engine->alteration_timers);
	const struct timer *read = timers_first(&engine->file_read_timers);
	const struct timer *watch = timers_first(&engine->watch_timers);
	int64_t deadline_ms = INT64_MAX;

	if (alteration != NULL)
		deadline_ms = alteration->due_ms;
	if (read != NULL && read->due_ms < deadline_ms)
		deadline_ms = read->due_ms;
	if (watch != NULL && watch->due_ms < deadline_ms)
		deadline_ms = watch->due_ms;
	return deadline_ms;
}

void lockfiles_destroy(struct engine *engine)
{
	struct lockfile *file, *next;

	while (engine->alterations != NULL)
		alteration_free(engine->alterations);
	while (engine->file_reads != NULL)
		free_read(engine->file_reads);
	HASH_ITER (hh, engine->lockfiles, file, next) {
		lockfile_free(file);
	}
	while (engine->file_asks != NULL)
		file_ask_free(engine->file_asks);
	timers_finish(&engine->alteration_timers);
	timers_finish(&engine->file_read_timers);
	timers_finish(&engine->watch_timers);
}

/* What this host has */

bool engine_has_file(const struct engine *engine, const char *path)
{
	return lockfile_find(engine, path) != NULL && !lockfile_is_busy(engine, path) &&
	       engine->now_ms < engine_lease_end(engine);
}

bool engine_knows_file(const struct engine *engine, const char *path)
{
	return engine_has_file(engine, path) && lockfile_is_known(lockfile_find(engine, path));
}

size_t engine_files_count(const struct engine *engine)
{
	return HASH_COUNT(engine->lockfiles);
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

void lockfiles_finish(struct engine *engine)
{
	if (engine->turns_changed)
		lockfiles_resume(engine);
	settle_changed(engine);
}

static void on_changed(struct store_change *change, int error)
{
	struct file_ask *ask = (struct file_ask *)change;
	struct engine *engine = ask->engine;
	struct alteration *alteration = ask->alteration;
	enum file_ask_kind kind = ask->kind;

	if (error != -ECONNRESET && ask->asker != NULL)
		session_acknowledged(engine, ask->sent_ms);
	if (is_forgotten(ask))
		return;
	alteration->ask = NULL;
	file_ask_free(ask);
	if (kind == ASK_SYNC)
		alteration_synced(alteration, error);
	else
		alteration_answered(alteration, error);
	lockfiles_finish(engine);
}

/* Whether what was read is the file of this host. */
static bool is_file(const struct lockfile *file, int error, const struct store_claim *claim)
{
	return error == 0 && outbox_is_of_session(file->engine, claim) &&
	       lockfile_has_line(claim->data, claim->data_bytes, file->line);
}

/* What was read at the path of a file of this host, and asked for when that was in the books
 * already. Takes the file, if it is gone. */
static void note_found(struct lockfile *file, int error, const struct store_claim *claim)
{
	struct engine *engine = file->engine;

	if ((error != 0 && error != -ENOENT) || lockfile_is_in_flux(engine, file->path))
		return; /* the next one tells more */
	if (is_file(file, error, claim)) {
		lockfile_note_seen(file);
		return;
	}
	lockfile_end(file, LOCKFILE_TAKEN);
	session_hurry_beat(engine); /* there may be more of them */
}

/* Who alters it may wait for that. */
static void note_looked(struct lockfile *file, int error, const struct store_claim *claim)
{
	struct engine *engine = file->engine;
	bool waits = lockfile_is_busy(engine, file->path);

	note_found(file, error, claim);
	if (error == 0 || error == -ENOENT)
		engine->turns_changed |= waits;
	else if (waits)
		lock_retry_in(engine, error == -ECONNRESET ? RETRY_SOON_MS : RETRY_LATER_MS);
}

/* Whoever asked may act upon it at once: what is not there can be made. So the file is gone before
 * that is told. */
static void answer_read(struct file_read *read, uint64_t serial, int error,
			const struct store_claim *claim)
{
	struct engine *engine = read->engine;
	struct lockfile *file = lockfile_find(engine, read->path);
	void *cookie = read->cookie;

	if (error == -ECONNRESET) {
		lock_retry_in(engine, RETRY_SOON_MS);
		return;
	}
	bool ours = file != NULL && is_file(file, error, claim);
	if (file != NULL && file->serial <= serial)
		note_found(file, error, claim);
	free_read(read);
	decisions_tell_file(engine, cookie, error, error == 0 ? claim : NULL, ours);
}

static void on_read(struct store_read *store_read, int error, const struct store_claim *claim)
{
	struct file_ask *ask = (struct file_ask *)store_read;
	struct engine *engine = ask->engine;
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
	lockfiles_finish(engine);
}

static void on_listed(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct file_ask *ask = (struct file_ask *)files;
	struct engine *engine = ask->engine;
	struct file_read *read = ask->reader;

	if (is_forgotten(ask))
		return;
	read->ask = NULL;
	file_ask_free(ask);
	if (error == -ECONNRESET) {
		lock_retry_in(engine, RETRY_SOON_MS);
		return;
	}
	void *cookie = read->cookie;
	free_read(read);
	decisions_tell_files(engine, cookie, error, names, count);
	lockfiles_finish(engine);
}

const struct file_answers engine_file_answers = {
	.changed = on_changed,
	.read = on_read,
	.listed = on_listed,
};
