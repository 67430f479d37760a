/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the requests in the tree .dlockfs that wait for the store. Each has a view on its way, or,
 * while there is no connection, the time at which to try again; it ends when no answer has come for
 * a while. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

/* As long as nothing comes from the store; and how soon to ask again. */
enum { ANSWER_LIMIT_MS = 5000, RETRY_MS = 100 };

struct status_wait {
	struct status_wait *prev, *next; /* in status->waits */
	struct filesystem *filesystem;
	fuse_req_t req;
	enum status_wait_kind kind;
	char *path; /* below the mount */
	char *lock; /* NULL: all */
	struct fuse_file_info info;
	struct view *view;
	uint64_t progress; /* of the view, when limit_ms was set */
	int64_t limit_ms;
	int64_t retry_ms; /* when there is no view */
};

static void free_wait(struct status_wait *wait)
{
	DL_DELETE(wait->filesystem->status->waits, wait);
	if (wait->view != NULL)
		view_cancel(wait->view);
	free(wait->path);
	free(wait->lock);
	free(wait);
}

static void refuse(struct status_wait *wait, int error)
{
	fuse_reply_err(wait->req, -error);
	free_wait(wait);
}

/* libfuse calls this from the loop, when it reads the FUSE_INTERRUPT. */
static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

/* What names of the store can be shown: not all are names of a file. */
static bool is_shown(const char *name)
{
	return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strchr(name, '/') == NULL && strlen(name) <= NAME_BYTES_MAX;
}

static void reply_listing(struct status_wait *wait, bool has_claims, const char *const *names,
			  size_t count)
{
	bool top = wait->lock[0] == '\0';
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out != NULL) {
		fwrite("d.\0d..", 1, 7, out);
		if (has_claims && !top)
			fwrite("f.queue", 1, 8, out);
		for (size_t i = 0; i < count; i++) {
			if (is_shown(names[i]) && (top || strcmp(names[i], ".queue") != 0))
				fprintf(out, "?%s%c", names[i], '\0');
		}
		fclose(out);
	}
	status_reply_content(wait->req, &wait->info, text, bytes);
}

/* A lock with others below is a directory. */
static void reply_lookup(struct status_wait *wait, bool queue, size_t claims, size_t names_count)
{
	struct status *status = wait->filesystem->status;
	bool directory = !queue && names_count > 0;

	if (queue && claims == 0)
		fuse_reply_err(wait->req, ENOENT);
	else
		status_node_reply(wait->req,
				  status_node_get(status, directory ? STATUS_LOCKS : STATUS_LOCK,
						  wait->path, wait->lock, NULL));
}

/* Tries again later where there was no connection. Returns whether there is an error. */
static bool handle_error(struct status_wait *wait, int error)
{
	wait->view = NULL;
	if (error == -ECONNRESET)
		wait->retry_ms = wait->filesystem->now_ms + RETRY_MS;
	else if (error != 0)
		refuse(wait, error);
	return error != 0;
}

static void on_names(void *context, int error, size_t claims, const char *const *names,
		     size_t names_count)
{
	struct status_wait *wait = context;
	const char *below = wait->path + strlen(STATUS_NAME "/locks");

	if (error == -ENOENT && wait->lock[0] == '\0')
		error = 0; /* there was never any lock */
	if (handle_error(wait, error))
		return;
	if (wait->kind == STATUS_WAIT_LOOKUP)
		/* The one name that is not that of a lock: .queue. */
		reply_lookup(wait, strcmp(below + 1, wait->lock) != 0, claims, names_count);
	else
		reply_listing(wait, claims > 0, names, names_count);
	free_wait(wait);
}

static void on_text(void *context, int error, const char *text, size_t text_bytes)
{
	struct status_wait *wait = context;
	char *copy;

	if (handle_error(wait, error))
		return;
	copy = malloc(text_bytes + 1);
	if (copy != NULL)
		memcpy(copy, text, text_bytes);
	status_reply_content(wait->req, &wait->info, copy, text_bytes);
	free_wait(wait);
}

static const struct view_events events = {.on_text = on_text, .on_names = on_names};

static int begin_view(struct status_wait *wait)
{
	struct viewer *viewer = wait->filesystem->viewer;

	wait->progress = 0;
	if (wait->kind != STATUS_WAIT_OPEN)
		return view_names(viewer, wait->lock, &events, wait, &wait->view);
	if (wait->lock != NULL)
		return view_queue(viewer, wait->lock, &events, wait, &wait->view);
	return view_queues(viewer, "", &events, wait, &wait->view);
}

void status_wait(fuse_req_t req, enum status_wait_kind kind, const char *path, const char *lock,
		 const struct fuse_file_info *info)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct status_wait *wait = calloc(1, sizeof(*wait));
	int error = -ENOMEM;

	if (wait == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	wait->filesystem = filesystem;
	wait->req = req;
	wait->kind = kind;
	wait->path = strdup(path);
	wait->lock = lock != NULL ? strdup(lock) : NULL;
	if (info != NULL)
		wait->info = *info;
	wait->limit_ms = filesystem->now_ms + ANSWER_LIMIT_MS;
	DL_APPEND(filesystem->status->waits, wait);
	/* As in parked_hold(): no interrupt comes between these. */
	if (fuse_req_interrupted(req))
		error = -EINTR;
	else if (wait->path != NULL && (lock == NULL || wait->lock != NULL))
		error = begin_view(wait);
	if (error != 0)
		refuse(wait, error);
	else
		fuse_req_interrupt_func(req, on_interrupt, wait);
}

/* It is due. */
static void advance(struct status_wait *wait)
{
	int64_t now_ms = wait->filesystem->now_ms;
	uint64_t progress = wait->view != NULL ? view_progress(wait->view) : 0;
	int error = 0;

	if (wait->limit_ms <= now_ms && progress <= wait->progress) {
		error = -ETIMEDOUT;
	} else if (wait->limit_ms <= now_ms) {
		wait->progress = progress;
		wait->limit_ms = now_ms + ANSWER_LIMIT_MS;
	} else if (wait->view == NULL) {
		error = begin_view(wait);
	}
	if (error != 0)
		refuse(wait, error);
}

static int64_t deadline(const struct status_wait *wait)
{
	if (wait->view == NULL && wait->retry_ms < wait->limit_ms)
		return wait->retry_ms;
	return wait->limit_ms;
}

void status_advance(struct filesystem *filesystem)
{
	struct status_wait *wait, *next;
	DL_FOREACH_SAFE (filesystem->status->waits, wait, next) {
		if (deadline(wait) <= filesystem->now_ms)
			advance(wait);
	}
}

int64_t status_deadline(const struct filesystem *filesystem)
{
	const struct status_wait *wait;
	int64_t first_ms = INT64_MAX;

	DL_FOREACH (filesystem->status->waits, wait) {
		if (deadline(wait) < first_ms)
			first_ms = deadline(wait);
	}
	return first_ms;
}

void status_refuse_all(struct filesystem *filesystem, int error)
{
	while (filesystem->status->waits != NULL)
		refuse(filesystem->status->waits, error);
}
