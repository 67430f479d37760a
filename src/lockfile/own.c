/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock files of this host. Loop thread only.
 */
#include "lockfile/own.h"

#include <stdlib.h>
#include <string.h>

#include "engine/books/save.h"
#include "lockfile/ask.h"
#include "lockfile/news.h"
#include "lockfile/save.h"
#include "lockfile/turn.h"

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

bool own_is_read(const struct own *file, int error, const struct store_claim *claim)
{
	return error == 0 && outbox_is_of_session(file->lockfiles->engine, claim) &&
	       own_has_line(claim->data, claim->data_bytes, file->line);
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
	lockfile_save_mark_own(file);
	return true;
}

void own_take_out(struct own *file)
{
	HASH_DEL(file->lockfiles->files, file);
	file->hh.tbl = NULL;
	file->lockfiles->engine->tenant.held--;
	engine_unmark(file->lockfiles->engine, &file->item);
}

/* Out of the books, and without questions. */
static void detach(struct own *file)
{
	struct lockfiles *lockfiles = file->lockfiles;

	if (file->hh.tbl != NULL)
		own_take_out(file);
	timers_clear(&lockfiles->watch_timers, &file->timer);
	if (file->is_unwatched)
		DL_DELETE(lockfiles->unwatched, file);
	file->is_unwatched = false;
	ask_forget(&file->watch);
	ask_forget(&file->ask);
}

void own_free(struct own *file)
{
	if (file == NULL)
		return;
	detach(file);
	free(file);
}

void own_end(struct own *file, enum lockfile_end why)
{
	struct lockfiles *lockfiles = file->lockfiles;

	/* Who was to change the file waits for nothing any more. */
	if (turn_is_busy(lockfiles, file->path) && !turn_is_in_flux(lockfiles, file->path))
		lockfiles->turns_changed = true;
	detach(file);
	news_gone(file, why);
}

void own_look(struct own *file)
{
	if (file->ask == NULL)
		ask_path(file->lockfiles, ASK_MISSED, file, &file->ask, file->path);
}

/* A file that is about to be altered may be gone by that. */
bool own_missed(void *context, const char *path)
{
	struct lockfiles *lockfiles = context;
	struct own *file = own_find(lockfiles, path);

	if (file == NULL)
		return false;
	if (!turn_is_busy(lockfiles, path))
		own_look(file);
	return true;
}

/* Files that are about to be altered, or are looked for, are not shown. */
bool own_show(void *context, uint32_t round, tenant_show *show, void *to)
{
	const struct lockfiles *lockfiles = context;
	struct own *file;

	for (file = lockfiles->files; file != NULL; file = file->hh.next) {
		if (file->proof_round == round || file->ask != NULL ||
		    turn_is_busy(lockfiles, file->path))
			continue;
		if (!show(to, file->path))
			return false;
		file->proof_round = round;
	}
	return true;
}
