/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the store for the content of views. Owns views under way: each has locks to look at, which
 * may lead to further ones, and claims to read. About a lock file, or a
 * directory of such files, more than one question is asked, one after the other. A view that has
 * more to ask is in the viewer's list, and gets its turn as answers come. A view is over when its
 * result is delivered, or it is cancelled, and is freed when no answer of the store is outstanding.
 * Loop thread only.
 */
#include "view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/escape.h"
#include "base/platform.h"
#include "claim/marker.h"
#include "view/claim.h"
#include "view/holders.h"
#include "view/hosts.h"
#include "view/lock.h"
#include "view/runs.h"
#include "view/user.h"

/* How many ranges a view keeps, a few dozen megabytes. Of claims beyond that only the span is kept.
 */
#define VIEW_RANGES_MAX (1 << 20)

/* Life */

static void free_locks(struct view_lock *locks)
{
	struct view_lock *lock, *next;
	DL_FOREACH_SAFE (locks, lock, next) {
		view_lock_free(lock);
	}
}

static void free_view(struct view *view)
{
	DL_DELETE(view->viewer->views, view);
	free_locks(view->unseen);
	free_locks(view->locks);
	for (size_t i = 0; i < view->names_count; i++)
		free(view->names[i]);
	free(view->names);
	free(view);
}

/* Puts the view into the list of those that have more to ask, or takes it out. */
static void update_asking(struct view *view)
{
	struct viewer *viewer = view->viewer;
	bool patient = view->kind == VIEW_ORPHANS && view->under_way > 0;
	bool asking = !view->over && !patient && (view->unseen != NULL || view->unread != NULL);

	if (asking && !view->asking)
		DL_APPEND2(viewer->asking, view, asking_prev, asking_next);
	else if (!asking && view->asking)
		DL_DELETE2(viewer->asking, view, asking_prev, asking_next);
	view->asking = asking;
}

/* The view is over: it asks and delivers nothing any more. */
static void set_over(struct view *view)
{
	view->over = true;
	update_asking(view);
}

static void end_view(struct view *view)
{
	set_over(view);
	if (view->under_way == 0)
		free_view(view);
}

static void fail(struct view *view, int error)
{
	const struct view_events *events = view->events;

	if (view->over)
		return;
	set_over(view);
	if (view->kind == VIEW_NAMES)
		events->on_names(view->context, error, 0, NULL, 0);
	else if (view->kind == VIEW_ORPHANS)
		events->on_searched(view->context, error);
	else
		events->on_text(view->context, error, NULL, 0);
}

/* Asking */

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count);
static void on_claim(struct store_read *read, int error, const struct store_claim *claim);
static void on_file(struct store_read *read, int error, const struct store_claim *claim);
static void on_files(struct store_files *files, int error, const char *const *names, size_t count);
static void on_shelf(struct store_files *files, int error, const char *const *names, size_t count);
static void on_shelved(struct store_read *read, int error, const struct store_claim *claim);

static int ask_for_claim(struct view *view)
{
	struct store *store = view->viewer->store;
	struct view_lock *lock = view->unread;
	struct view_claim *claim = &lock->claims[lock->asked];
	char marker[CLAIM_MARKER_BYTES];
	const char *name = claim->name;
	int error;

	if (claim->orphan && claim_marker_format(marker, claim->name))
		name = marker;
	claim->read.done = on_claim;
	error = store->ops->read(store, &claim->read, lock->path, name);
	if (error == 0 && ++lock->asked == lock->count)
		DL_DELETE2(view->unread, lock, read_prev, read_next);
	return error;
}

static int ask_for_file(struct store *store, struct view_lock *lock)
{
	char *path = strndup(lock->path, strlen(lock->path) - 1);
	int error = -ENOMEM;

	lock->read.done = on_file;
	if (path != NULL)
		error = store->ops->read(store, &lock->read, path, NULL);
	free(path);
	return error;
}

static int ask_for_files(struct store *store, struct view_lock *lock)
{
	char *top = strndup(lock->plain, lock->top_bytes);
	int error = -ENOMEM;

	lock->files.done = on_files;
	if (top != NULL)
		error = store->ops->files(store, &lock->files, top);
	free(top);
	return error;
}

static int ask_for_shelved(struct store *store, struct view_lock *lock)
{
	char *path = view_shelf_path(lock);
	int error = -ENOMEM;

	lock->read.done = on_shelved;
	if (path != NULL)
		error = store->ops->read(store, &lock->read, path, NULL);
	free(path);
	return error;
}

static int ask_for_lock(struct view *view)
{
	struct store *store = view->viewer->store;
	struct view_lock *lock = view->unseen;
	enum view_question question = view_lock_next_question(lock);
	int error;

	if (question == ASK_FILE) {
		error = ask_for_file(store, lock);
	} else if (question == ASK_FILES) {
		error = ask_for_files(store, lock);
	} else if (question == ASK_SHELF) {
		lock->files.done = on_shelf;
		error = store->ops->files(store, &lock->files, view->shelf->directory);
	} else if (question == ASK_SHELVED) {
		error = ask_for_shelved(store, lock);
	} else {
		lock->look.done = on_looked;
		lock->looked = true;
		error = store->ops->look(store, &lock->look, lock->path);
	}
	if (error == 0) {
		lock->to_ask &= ~(unsigned int)question;
		lock->under_way = true;
		DL_DELETE(view->unseen, lock);
		DL_APPEND(view->locks, lock);
	}
	return error;
}

/* Asks as many questions as may be under way, one for each view in turn. Out of memory, the rest is
 * asked when the next answer comes. */
static void ask(struct viewer *viewer)
{
	while (viewer->under_way < VIEW_READS_MAX && viewer->asking != NULL) {
		struct view *view = viewer->asking;
		int error = view->unread != NULL ? ask_for_claim(view) : ask_for_lock(view);

		if (error != 0)
			return;
		DL_DELETE2(viewer->asking, view, asking_prev, asking_next);
		view->asking = false;
		view->under_way++;
		viewer->under_way++;
		update_asking(view);
	}
}

/* Answers */

static int compare_locks(const struct view_lock *a, const struct view_lock *b)
{
	return strcmp(a->plain, b->plain);
}

/* Returns 0 or -ENOMEM. */
static int write_lock(FILE *out, const struct view *view, const struct view_lock *lock)
{
	const struct engine *engine = view->viewer->engine;
	bool any = view->kind == VIEW_QUEUE || lock->file != NULL;
	int error = 0;

	for (size_t i = 0; i < lock->count && !any; i++)
		any = !lock->claims[i].gone;
	if (lock->error != 0) {
		fputs("lock=", out);
		escape_write(out, lock->plain);
		fprintf(out, " error=%s\n", strerrorname_np(-lock->error));
	} else if (view->kind == VIEW_SHELF) {
		fputs(lock->lines != NULL ? lock->lines : "", out);
	} else if (any) {
		if (engine != NULL)
			view_users_add_orphans(lock->claims, lock->count, engine, lock->path);
		if (engine != NULL)
			error = view_users_add(lock->claims, lock->count, engine, lock->path);
		if (error == 0)
			error = view_holders_find(lock->claims, lock->count);
		if (error == 0)
			view_claims_write(out, lock->plain, lock->file, lock->claims, lock->count);
	}
	return error;
}

static void tell_text(struct view *view)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	const struct view_lock *lock;
	bool failed = out == NULL;

	DL_SORT(view->locks, compare_locks);
	if (out != NULL) {
		DL_FOREACH (view->locks, lock) {
			failed = write_lock(out, view, lock) != 0 || failed;
		}
		failed = ferror(out) != 0 || failed;
		failed = fclose(out) != 0 || failed;
	}
	if (failed) {
		fail(view, -ENOMEM);
	} else {
		set_over(view);
		view->events->on_text(view->context, 0, text, bytes);
	}
	free(text);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names may be told by several answers: each counts once. */
static void tell_names(struct view *view)
{
	size_t count = 0;

	if (view->names_count > 0)
		qsort(view->names, view->names_count, sizeof(*view->names), compare_names);
	for (size_t i = 0; i < view->names_count; i++) {
		char *name = view->names[i];
		if (count > 0 && strcmp(name, view->names[count - 1]) == 0)
			free(name);
		else
			view->names[count++] = name;
	}
	view->names_count = count;
	set_over(view);
	view->events->on_names(view->context, 0, view->claims, (const char *const *)view->names,
			       view->names_count);
}

static void tell_end(struct view *view)
{
	if (view->kind == VIEW_NAMES) {
		tell_names(view);
	} else if (view->kind == VIEW_ORPHANS) {
		set_over(view);
		view->events->on_searched(view->context, 0);
	} else {
		tell_text(view);
	}
}

/* An answer has come, and was taken in. */
static void answered(struct view *view, int error)
{
	struct viewer *viewer = view->viewer;

	view->under_way--;
	viewer->under_way--;
	view->progress++;
	if (error != -ECONNRESET)
		viewer->progress++;
	if (error != 0)
		fail(view, error);
	if (!view->over && view->under_way == 0 && view->unseen == NULL && view->unread == NULL)
		tell_end(view);
	if (view->over)
		end_view(view);
	else
		update_asking(view);
	ask(viewer);
	while (viewer->under_way == 0 && viewer->asking != NULL) {
		view = viewer->asking;
		fail(view, -ENOMEM);
		end_view(view);
	}
}

/* The answer to one of the questions about the lock was taken in. */
static void lock_answered(struct view_lock *lock, int error)
{
	struct view *view = lock->view;

	view_lock_answered(lock);
	answered(view, error);
}

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct view_lock *lock = (struct view_lock *)look;

	if (error != 0)
		error = view_lock_take_error(lock, error);
	else if (!lock->view->over)
		error = view_lock_take_look(lock, names, names_count, entries, entries_count);
	lock_answered(lock, error);
}

static void on_file(struct store_read *read, int error, const struct store_claim *claim)
{
	struct view_lock *lock = (struct view_lock *)read;

	if (error == -ENOENT)
		error = 0;
	else if (error != 0)
		error = view_lock_take_error(lock, error);
	else if (!lock->view->over)
		error = view_lock_take_file(lock, claim);
	lock_answered(lock, error);
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct view_lock *lock = (struct view_lock *)files;

	if (error != 0)
		error = view_lock_take_error(lock, error);
	else if (!lock->view->over)
		error = view_lock_take_files(lock, names, count);
	lock_answered(lock, error);
}

static void on_shelf(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct view_lock *lock = (struct view_lock *)files;

	if (error != 0)
		error = view_lock_take_error(lock, error);
	else if (!lock->view->over)
		error = view_shelf_take_names(lock, names, count);
	lock_answered(lock, error);
}

static void on_shelved(struct store_read *read, int error, const struct store_claim *claim)
{
	struct view_lock *lock = (struct view_lock *)read;

	if (error != 0)
		error = view_lock_take_error(lock, error);
	else if (!lock->view->over)
		error = lock->view->shelf->take(lock, claim);
	lock_answered(lock, error);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *data)
{
	struct view_claim *claim = (struct view_claim *)read;
	struct view *view = claim->lock->view;

	if (error == 0 && data->session == 0 && !claim->orphan && !claim->parts.hold)
		claim->gone = true; /* it never was a claim */
	else if (error == 0 && !view->over)
		error = view_claim_read(claim, data, &view->ranges_left);
	else if (error == -ENOENT)
		claim->gone = true;
	answered(view, error == -ECONNRESET || error == -ENOMEM ? error : 0);
}

/* What others call */

struct viewer *viewer_create(struct store *store, const struct engine *engine,
			     const struct view_files *files, const void *files_context)
{
	struct viewer *viewer = calloc(1, sizeof(*viewer));

	if (viewer == NULL)
		return NULL;
	viewer->store = store;
	viewer->engine = engine;
	viewer->files = files;
	viewer->files_context = files_context;
	return viewer;
}

void viewer_destroy(struct viewer *viewer)
{
	if (viewer == NULL)
		return;
	while (viewer->views != NULL)
		free_view(viewer->views);
	free(viewer);
}

static int start(struct viewer *viewer, enum view_kind kind, const struct view_shelf *shelf,
		 const char *path, const struct view_events *events, void *context,
		 struct view **ret)
{
	struct view *view = calloc(1, sizeof(*view));
	struct view_lock *lock;

	if (view == NULL)
		return -ENOMEM;
	view->viewer = viewer;
	view->kind = kind;
	view->shelf = shelf;
	view->events = events;
	view->context = context;
	view->ranges_left = VIEW_RANGES_MAX;
	DL_APPEND(viewer->views, view);
	lock = view_lock_add(view, path);
	if (lock == NULL) {
		free_view(view);
		return -ENOMEM;
	}
	update_asking(view);
	ask(viewer);
	if (viewer->under_way == 0) {
		end_view(view);
		return -ENOMEM;
	}
	*ret = view;
	return 0;
}

int view_queue(struct viewer *viewer, const char *path, const struct view_events *events,
	       void *context, struct view **ret)
{
	return start(viewer, VIEW_QUEUE, NULL, path, events, context, ret);
}

int view_queues(struct viewer *viewer, const char *path, const struct view_events *events,
		void *context, struct view **ret)
{
	return start(viewer, VIEW_QUEUES, NULL, path, events, context, ret);
}

int view_runs(struct viewer *viewer, const struct view_events *events, void *context,
	      struct view **ret)
{
	return start(viewer, VIEW_SHELF, &view_runs_shelf, "", events, context, ret);
}

int view_hosts(struct viewer *viewer, const struct view_events *events, void *context,
	       struct view **ret)
{
	return start(viewer, VIEW_SHELF, &view_hosts_shelf, "", events, context, ret);
}

int view_names(struct viewer *viewer, const char *path, const struct view_events *events,
	       void *context, struct view **ret)
{
	return start(viewer, VIEW_NAMES, NULL, path, events, context, ret);
}

int view_search_orphans(struct viewer *viewer, const char *path, const struct view_events *events,
			void *context, struct view **ret)
{
	return start(viewer, VIEW_ORPHANS, NULL, path, events, context, ret);
}

uint64_t viewer_progress(const struct viewer *viewer)
{
	return viewer->progress;
}

uint64_t view_progress(const struct view *view)
{
	return view->progress;
}

void view_cancel(struct view *view)
{
	end_view(view);
}
