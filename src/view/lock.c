/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "view/file.h"

/* The longest path of a lock that is shown. */
#define PATH_BYTES_MAX 4095

void view_lock_free(struct view_lock *lock)
{
	for (size_t i = 0; i < lock->count; i++)
		view_claim_finish(&lock->claims[i]);
	if (lock->by_plain.tbl != NULL)
		HASH_DELETE(by_plain, lock->view->in_tops, lock);
	view_file_free(lock->file);
	free(lock->lines);
	free(lock->claims);
	free(lock->path);
	free(lock);
}

static void enqueue(struct view_lock *lock)
{
	DL_APPEND(lock->view->unseen, lock);
}

/* The length of the path of the directory of files that it is, or is in; SIZE_MAX: there is none.
 */
static size_t top_bytes_of(const struct viewer *viewer, const char *plain)
{
	if (viewer->files == NULL)
		return SIZE_MAX;
	return viewer->files->top_bytes(viewer->files_context, plain);
}

static unsigned int questions_of(const struct view_lock *lock)
{
	enum view_kind kind = lock->view->kind;

	if (kind == VIEW_SHELF)
		return lock->plain[0] == '\0' ? ASK_SHELF : ASK_SHELVED;
	if (lock->top_bytes == SIZE_MAX || kind == VIEW_ORPHANS)
		return ASK_LOOK;
	if (!lock->is_top)
		return ASK_FILE | ASK_LOOK;
	return kind == VIEW_QUEUE ? ASK_LOOK : ASK_FILES | ASK_LOOK;
}

/* The path of the queue, from the plain one. NULL: out of memory. */
static char *queue_path(const struct view_lock *lock)
{
	const char *plain = lock->plain;
	size_t top_bytes = lock->top_bytes;
	char *path;

	if (top_bytes == SIZE_MAX || lock->is_top)
		return strdup(plain);
	if (asprintf(&path, "%.*s//%s/", (int)top_bytes, plain,
		     plain + top_bytes + (top_bytes > 0)) < 0)
		return NULL;
	return path;
}

struct view_lock *view_lock_add(struct view *view, const char *plain)
{
	size_t bytes = strlen(plain);
	struct view_lock *lock = calloc(1, sizeof(*lock) + bytes + 1);

	if (lock == NULL)
		return NULL;
	lock->view = view;
	strcpy(lock->plain, plain);
	lock->top_bytes = view->kind == VIEW_SHELF ? SIZE_MAX : top_bytes_of(view->viewer, plain);
	lock->is_top = lock->top_bytes == bytes;
	lock->path = queue_path(lock);
	lock->to_ask = questions_of(lock);
	if (lock->path != NULL && lock->top_bytes != SIZE_MAX)
		HASH_ADD_KEYPTR(by_plain, view->in_tops, lock->plain, bytes, lock);
	if (lock->path == NULL || (lock->top_bytes != SIZE_MAX && lock->by_plain.tbl == NULL)) {
		free(lock->path);
		free(lock);
		return NULL;
	}
	enqueue(lock);
	return lock;
}

static int note_claims(struct view_lock *lock, const struct store_entry *entries, size_t count)
{
	struct view *view = lock->view;

	if (count == 0)
		return 0;
	lock->claims = calloc(count, sizeof(*lock->claims));
	if (lock->claims == NULL)
		return -ENOMEM;
	for (; lock->count < count; lock->count++) {
		struct view_claim *claim = &lock->claims[lock->count];

		claim->lock = lock;
		claim->parts = entries[lock->count].claim;
		claim->orphan = entries[lock->count].orphan;
		view_asker_drop(&claim->asker);
		claim->name = strdup(entries[lock->count].name);
		if (claim->name == NULL)
			return -ENOMEM;
	}
	DL_APPEND2(view->unread, lock, read_prev, read_next);
	return 0;
}

enum view_question view_lock_next_question(const struct view_lock *lock)
{
	return (enum view_question)(lock->to_ask & -lock->to_ask);
}

void view_lock_answered(struct view_lock *lock)
{
	struct view *view = lock->view;

	lock->under_way = false;
	if (lock->to_ask != 0) {
		DL_DELETE(view->locks, lock);
		enqueue(lock);
	} else if (view->kind == VIEW_ORPHANS && lock->error == 0) {
		DL_DELETE(view->locks, lock);
		view_lock_free(lock);
	}
}

/* The lock is to be looked at, by a further question. */
static void want_look(struct view_lock *lock)
{
	bool waits = lock->to_ask != 0 || lock->under_way;

	if (lock->looked)
		return;
	lock->to_ask |= ASK_LOOK;
	if (waits)
		return;
	DL_DELETE(lock->view->locks, lock);
	enqueue(lock);
}

/* What is below a lock, or in a directory of files, is to be looked at, too. What both a list of
 * the files and a look have told is there already. Returns 0 or -ENOMEM. */
static int note_lock(const struct view_lock *above, const char *name, bool looked)
{
	struct view *view = above->view;
	size_t bytes = strlen(above->plain);
	struct view_lock *lock;
	char *plain;

	if (bytes + 1 + strlen(name) > PATH_BYTES_MAX)
		return 0;
	if (asprintf(&plain, "%s%s%s", above->plain, bytes > 0 ? "/" : "", name) < 0)
		return -ENOMEM;
	HASH_FIND(by_plain, view->in_tops, plain, strlen(plain), lock);
	bool is_new = lock == NULL;
	if (is_new)
		lock = view_lock_add(view, plain);
	else if (looked)
		want_look(lock);
	/* It has a queue only if a look tells that. */
	if (is_new && lock != NULL && !looked && !lock->is_top)
		lock->to_ask &= ~(unsigned int)ASK_LOOK;
	free(plain);
	return lock != NULL ? 0 : -ENOMEM;
}

/* Adds the first component of the name, for VIEW_NAMES. Returns 0 or -ENOMEM. */
static int note_name(struct view *view, const char *name)
{
	size_t count = view->names_count;

	if ((count & (count - 1)) == 0) {
		size_t room = count > 0 ? 2 * count : 1;
		char **names = reallocarray(view->names, room, sizeof(*names));
		if (names == NULL)
			return -ENOMEM;
		view->names = names;
	}
	view->names[count] = strndup(name, strcspn(name, "/"));
	if (view->names[count] == NULL)
		return -ENOMEM;
	view->names_count++;
	return 0;
}

/* Notes an error of one question: -ENOENT only counts if nothing else is there. In a view of
 * several locks those that cannot be read have an error of their own. */
int view_lock_take_error(struct view_lock *lock, int error)
{
	if (error == -ENOENT && (lock->to_ask != 0 || lock->found))
		return 0;
	if (lock->view->kind != VIEW_QUEUES && lock->view->kind != VIEW_SHELF &&
	    lock->view->kind != VIEW_ORPHANS)
		return error;
	if (error == -EACCES || error == -EIO)
		lock->error = error;
	return error == -EACCES || error == -EIO || error == -ENOENT ? 0 : error;
}

/* Reports the orphans of a lock, about which nothing more is asked. */
static void tell_orphans(struct view_lock *lock, const struct store_entry *entries, size_t count)
{
	struct view *view = lock->view;
	size_t i = 0;

	while (i < count && !entries[i].orphan)
		i++;
	if (i < count)
		view->events->on_orphans(view->context, lock->path);
}

/* A name that a look has told: that of a lock, or "/NAME/" for the queue of a file in a directory
 * of files (stores/store.h). Returns 0 or -ENOMEM. */
static int note_looked(struct view_lock *lock, const char *name)
{
	size_t bytes = strlen(name);
	bool of_file = name[0] == '/' && bytes > 2 && name[bytes - 1] == '/';
	char *plain = of_file ? strndup(name + 1, bytes - 2) : strdup(name);
	int error = -ENOMEM;

	if (plain != NULL)
		error = lock->view->kind == VIEW_NAMES ? note_name(lock->view, plain)
						       : note_lock(lock, plain, true);
	free(plain);
	return error;
}

/* In a directory of files, what has the form of a claim is a file. Returns 0 or -ENOMEM. */
int view_lock_take_look(struct view_lock *lock, const char *const *names, size_t names_count,
			const struct store_entry *entries, size_t entries_count)
{
	struct view *view = lock->view;
	int error = 0;

	lock->found = true;
	if (lock->is_top)
		entries_count = 0;
	view->claims += entries_count;
	if (view->kind == VIEW_ORPHANS)
		tell_orphans(lock, entries, entries_count);
	else if (view->kind != VIEW_NAMES)
		error = note_claims(lock, entries, entries_count);
	for (size_t i = 0; error == 0 && view->kind != VIEW_QUEUE && i < names_count; i++)
		error = note_looked(lock, names[i]);
	return error;
}

/* Returns 0 or -ENOMEM. */
int view_lock_take_file(struct view_lock *lock, const struct store_claim *claim)
{
	const struct viewer *viewer = lock->view->viewer;

	if (claim->session == 0)
		return 0; /* something else has that path */
	lock->file = view_file_read(claim, viewer->files);
	if (lock->file == NULL)
		return -ENOMEM;
	lock->found = true;
	lock->view->claims++;
	if (lock->file->facts.queue != NULL && !lock->looked) {
		free(lock->path);
		lock->path = lock->file->facts.queue;
		lock->file->facts.queue = NULL;
		lock->to_ask |= ASK_LOOK;
	}
	if (lock->view->kind == VIEW_NAMES && lock->file->facts.is_directory)
		lock->to_ask |= ASK_FILES;
	return 0;
}

/* Notes those that are in the directory; for VIEW_NAMES it may be one below the top. Returns 0 or
 * -ENOMEM. */
int view_lock_take_files(struct view_lock *lock, const char *const *names, size_t count)
{
	const char *below = lock->is_top ? "" : lock->plain + lock->top_bytes;
	size_t bytes;
	int error = 0;

	if (!lock->is_top && lock->top_bytes > 0)
		below++;
	bytes = strlen(below);
	lock->found = lock->found || lock->is_top;
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (lock->view->kind != VIEW_NAMES)
			error = note_lock(lock, names[i], false);
		else if (bytes == 0)
			error = note_name(lock->view, names[i]);
		else if (strncmp(names[i], below, bytes) == 0 && names[i][bytes] == '/')
			error = note_name(lock->view, names[i] + bytes + 1);
	}
	return error;
}
