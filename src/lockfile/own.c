/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of this host, whose turn it is to alter one, and questions to the store. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "claim/file_path.h"
#include "engine/books/outbox.h"
#include "engine/books/save.h"
#include "lockfile/alteration.h"

static size_t line_bytes(const char *text)
{
	return strcspn(text, "\n");
}

bool own_has_line(const void *text, size_t bytes, const char *line)
{
	size_t line_length = line_bytes(line);
	const char *start = text;

	return bytes >= line_length && memcmp(start, line, line_length) == 0 &&
	       (bytes == line_length || start[line_length] == '\n' || start[line_length] == '\0');
}

struct own *own_find(const struct lockfiles *lockfiles, const char *path)
{
	struct own *file;
	HASH_FIND_STR(lockfiles->files, path, file);
	return file;
}

struct own *own_create(struct lockfiles *lockfiles, const char *path, const char *text)
{
	size_t path_bytes = strlen(path) + 1, bytes = line_bytes(text);
	struct own *file = calloc(1, sizeof(*file) + path_bytes + bytes + 1);

	if (file == NULL)
		return NULL;
	file->lockfiles = lockfiles;
	file->seen_ms = INT64_MIN;
	memcpy(file->path, path, path_bytes);
	file->line = file->path + path_bytes;
	memcpy(file->line, text, bytes);
	return file;
}

/* Nobody waits for its watch any more. */
static void leave_watch(struct own *file)
{
	struct lockfiles *lockfiles = file->lockfiles;

	timers_clear(&lockfiles->watch_timers, &file->timer);
	if (file->is_unwatched)
		DL_DELETE(lockfiles->unwatched, file);
	file->is_unwatched = false;
	file_ask_forget(&file->watch);
}

bool own_add(struct own *file)
{
	struct lockfiles *lockfiles = file->lockfiles;

	if (timers_reserve(&lockfiles->watch_timers, HASH_COUNT(lockfiles->files) + 1) < 0)
		return false;
	HASH_ADD_STR(lockfiles->files, path, file);
	if (file->hh.tbl == NULL)
		return false;
	lockfiles->engine->tenant.held++;
	file->serial = ++lockfiles->engine->issued.serials;
	own_mark(file);
	return true;
}

void own_take_out(struct own *file)
{
	HASH_DEL(file->lockfiles->files, file);
	file->hh.tbl = NULL;
	file->lockfiles->engine->tenant.held--;
	engine_unmark(file->lockfiles->engine, &file->item);
}

void own_free(struct own *file)
{
	if (file == NULL)
		return;
	if (file->hh.tbl != NULL)
		own_take_out(file);
	leave_watch(file);
	file_ask_forget(&file->ask);
	free(file);
}

void own_end(struct own *file, enum lockfile_end why)
{
	struct lockfiles *lockfiles = file->lockfiles;

	/* Who was to change it waits for nothing any more. */
	if (own_is_busy(lockfiles, file->path) && !own_is_in_flux(lockfiles, file->path))
		lockfiles->turns_changed = true;
	own_take_out(file);
	leave_watch(file);
	file_ask_forget(&file->ask);
	news_gone(file, why);
}

/* Turns */

static struct turn *find_turn(const struct lockfiles *lockfiles, const char *path)
{
	struct turn *turn;
	HASH_FIND_STR(lockfiles->turns, path, turn);
	return turn;
}

bool own_is_busy(const struct lockfiles *lockfiles, const char *path)
{
	return find_turn(lockfiles, path) != NULL;
}

bool own_is_in_flux(const struct lockfiles *lockfiles, const char *path)
{
	const struct turn *turn = find_turn(lockfiles, path);
	return turn != NULL && turn->steps->alteration->state != ALTERATION_WANTED;
}

int step_queue(struct alteration_step *step, const char *path)
{
	struct lockfiles *lockfiles = step->alteration->lockfiles;
	struct turn *turn = find_turn(lockfiles, path);

	if (turn == NULL) {
		turn = calloc(1, sizeof(*turn) + strlen(path) + 1);
		if (turn == NULL)
			return -ENOMEM;
		strcpy(turn->path, path);
		HASH_ADD_STR(lockfiles->turns, path, turn);
		if (turn->hh.tbl == NULL) {
			free(turn);
			return -ENOMEM;
		}
	}
	step->turn = turn;
	DL_APPEND(turn->steps, step);
	return 0;
}

void step_leave(struct alteration_step *step)
{
	struct turn *turn = step->turn;

	if (turn == NULL)
		return;
	DL_DELETE(turn->steps, step);
	step->turn = NULL;
	if (turn->steps != NULL)
		return;
	HASH_DEL(step->alteration->lockfiles->turns, turn);
	free(turn);
}

/* Questions */

static size_t bytes_of(const struct store_step *step)
{
	return strlen(step->path) + 1 + (step->text != NULL ? strlen(step->text) + 1 : 0);
}

static void copy_step(struct store_step *copy, const struct store_step *step, char **at)
{
	*copy = *step;
	copy->path = *at;
	*at = stpcpy(*at, step->path) + 1;
	if (step->text == NULL)
		return;
	copy->text = *at;
	*at = stpcpy(*at, step->text) + 1;
}

static enum errand_kind errand_of(enum file_ask_kind kind)
{
	if (kind == ASK_ALTER || kind == ASK_SYNC)
		return ERRAND_ALTER;
	if (kind == ASK_LIST)
		return ERRAND_LIST;
	return kind == ASK_WATCH ? ERRAND_WATCH : ERRAND_READ;
}

struct file_ask *file_ask_send(struct lockfiles *lockfiles, enum file_ask_kind kind, void *asker,
			       const struct store_step *steps, size_t count)
{
	size_t bytes = sizeof(struct file_ask) + count * sizeof(*steps);
	struct file_ask *ask;

	for (size_t i = 0; i < count; i++)
		bytes += bytes_of(&steps[i]);
	ask = calloc(1, bytes);
	if (ask == NULL)
		return NULL;
	char *at = (char *)&ask->steps[count];
	for (size_t i = 0; i < count; i++)
		copy_step(&ask->steps[i], &steps[i], &at);
	if (kind == ASK_ALTER || kind == ASK_SYNC)
		ask->errand.change.done = lockfiles->answers->changed;
	else if (kind == ASK_LIST)
		ask->errand.files.done = lockfiles->answers->listed;
	else
		ask->errand.read.done = lockfiles->answers->read;
	ask->lockfiles = lockfiles;
	ask->kind = kind;
	ask->asker = asker;
	ask->sent_ms = lockfiles->engine->now_ms;
	ask->serial = lockfiles->engine->issued.serials;
	ask->errand.kind = errand_of(kind);
	ask->errand.steps = ask->steps;
	ask->errand.count = count;
	DL_APPEND(lockfiles->asks, ask);
	outbox_run(lockfiles->engine, &ask->errand);
	return ask;
}

struct file_ask *file_ask_path(struct lockfiles *lockfiles, enum file_ask_kind kind, void *asker,
			       const char *path)
{
	const struct store_step step = {.path = path};
	return file_ask_send(lockfiles, kind, asker, &step, 1);
}

void file_ask_free(struct file_ask *ask)
{
	DL_DELETE(ask->lockfiles->asks, ask);
	free(ask);
}

void file_ask_forget(struct file_ask **ask)
{
	if (*ask != NULL)
		(*ask)->asker = NULL;
	*ask = NULL;
}

bool own_look(struct own *file)
{
	if (file->ask == NULL)
		file->ask = file_ask_path(file->lockfiles, ASK_MISSED, file, file->path);
	return file->ask != NULL;
}

/* One that is about to be altered may be gone by that. */
bool lockfiles_missed(void *context, const char *path)
{
	struct lockfiles *lockfiles = context;
	struct own *file = own_find(lockfiles, path);

	if (file == NULL)
		return false;
	if (!own_is_busy(lockfiles, path))
		own_look(file);
	return true;
}

/* But for those that are about to be altered. */
bool lockfiles_show(void *context, uint32_t round, tenant_show *show, void *to)
{
	const struct lockfiles *lockfiles = context;
	struct own *file;

	for (file = lockfiles->files; file != NULL; file = file->hh.next) {
		if (file->proof_round == round || file->ask != NULL ||
		    own_is_busy(lockfiles, file->path))
			continue;
		if (!show(to, file->path))
			return false;
		file->proof_round = round;
	}
	return true;
}
