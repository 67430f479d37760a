/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of this host, whose turn it is to alter one, and questions to the store. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "claim/file_path.h"
#include "engine/alteration.h"
#include "engine/decisions.h"
#include "engine/outbox.h"
#include "engine/save.h"

static size_t line_bytes(const char *text)
{
	return strcspn(text, "\n");
}

bool lockfile_has_line(const void *text, size_t bytes, const char *line)
{
	size_t line_length = line_bytes(line);
	const char *start = text;

	return bytes >= line_length && memcmp(start, line, line_length) == 0 &&
	       (bytes == line_length || start[line_length] == '\n' || start[line_length] == '\0');
}

struct lockfile *lockfile_find(const struct engine *engine, const char *path)
{
	struct lockfile *file;
	HASH_FIND_STR(engine->lockfiles, path, file);
	return file;
}

struct lockfile *lockfile_create(struct engine *engine, const char *path, const char *text)
{
	size_t path_bytes = strlen(path) + 1, bytes = line_bytes(text);
	struct lockfile *file = calloc(1, sizeof(*file) + path_bytes + bytes + 1);

	if (file == NULL)
		return NULL;
	file->engine = engine;
	file->seen_ms = INT64_MIN;
	memcpy(file->path, path, path_bytes);
	file->line = file->path + path_bytes;
	memcpy(file->line, text, bytes);
	return file;
}

/* Nobody waits for its watch any more. */
static void leave_watch(struct lockfile *file)
{
	struct engine *engine = file->engine;

	timers_clear(&engine->watch_timers, &file->timer);
	if (file->is_unwatched)
		DL_DELETE(engine->unwatched, file);
	file->is_unwatched = false;
	file_ask_forget(&file->watch);
}

bool lockfile_add(struct lockfile *file)
{
	struct engine *engine = file->engine;

	if (timers_reserve(&engine->watch_timers, HASH_COUNT(engine->lockfiles) + 1) < 0)
		return false;
	HASH_ADD_STR(engine->lockfiles, path, file);
	if (file->hh.tbl == NULL)
		return false;
	file->serial = ++engine->issued.serials;
	lockfile_mark(file);
	return true;
}

void lockfile_free(struct lockfile *file)
{
	if (file == NULL)
		return;
	if (file->hh.tbl != NULL) {
		HASH_DEL(file->engine->lockfiles, file);
		engine_unmark(file->engine, &file->item);
	}
	leave_watch(file);
	file_ask_forget(&file->ask);
	free(file);
}

void lockfile_end(struct lockfile *file, enum lockfile_end why)
{
	struct engine *engine = file->engine;

	/* Who was to change it waits for nothing any more. */
	if (lockfile_is_busy(engine, file->path) && !lockfile_is_in_flux(engine, file->path))
		engine->turns_changed = true;
	HASH_DEL(engine->lockfiles, file);
	engine_unmark(engine, &file->item);
	leave_watch(file);
	file_ask_forget(&file->ask);
	file->end = why;
	decisions_add_end(engine, file);
}

/* Turns */

static struct turn *find_turn(const struct engine *engine, const char *path)
{
	struct turn *turn;
	HASH_FIND_STR(engine->turns, path, turn);
	return turn;
}

bool lockfile_is_busy(const struct engine *engine, const char *path)
{
	return find_turn(engine, path) != NULL;
}

bool lockfile_is_in_flux(const struct engine *engine, const char *path)
{
	const struct turn *turn = find_turn(engine, path);
	return turn != NULL && turn->steps->alteration->state != ALTERATION_WANTED;
}

int step_queue(struct alteration_step *step, const char *path)
{
	struct engine *engine = step->alteration->engine;
	struct turn *turn = find_turn(engine, path);

	if (turn == NULL) {
		turn = calloc(1, sizeof(*turn) + strlen(path) + 1);
		if (turn == NULL)
			return -ENOMEM;
		strcpy(turn->path, path);
		HASH_ADD_STR(engine->turns, path, turn);
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
	HASH_DEL(step->alteration->engine->turns, turn);
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

struct file_ask *file_ask_send(struct engine *engine, enum file_ask_kind kind, void *asker,
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
		ask->change.done = engine->file_answers->changed;
	else if (kind == ASK_LIST)
		ask->files.done = engine->file_answers->listed;
	else
		ask->read.done = engine->file_answers->read;
	ask->watcher.of_file = true;
	ask->engine = engine;
	ask->kind = kind;
	ask->asker = asker;
	ask->sent_ms = engine->now_ms;
	ask->serial = engine->issued.serials;
	ask->count = count;
	DL_APPEND(engine->file_asks, ask);
	outbox_ask_file(ask);
	return ask;
}

struct file_ask *file_ask_path(struct engine *engine, enum file_ask_kind kind, void *asker,
			       const char *path)
{
	const struct store_step step = {.path = path};
	return file_ask_send(engine, kind, asker, &step, 1);
}

void file_ask_free(struct file_ask *ask)
{
	DL_DELETE(ask->engine->file_asks, ask);
	free(ask);
}

void file_ask_forget(struct file_ask **ask)
{
	if (*ask != NULL)
		(*ask)->asker = NULL;
	*ask = NULL;
}

bool lockfile_look(struct lockfile *file)
{
	if (file->ask == NULL)
		file->ask = file_ask_path(file->engine, ASK_MISSED, file, file->path);
	return file->ask != NULL;
}

/* One that is about to be altered may be gone by that. */
bool lockfile_missed(struct engine *engine, const char *path)
{
	struct lockfile *file = lockfile_find(engine, path);

	if (file == NULL)
		return false;
	if (!lockfile_is_busy(engine, path))
		lockfile_look(file);
	return true;
}
